"""How the learning goes: what sharing patterns has brought, what comes, and what a person has judged of it."""

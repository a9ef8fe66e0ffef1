PRAGMA journal_mode = WAL;
CREATE TABLE thread_goals (thread_id TEXT PRIMARY KEY, goal_id TEXT, objective TEXT, status TEXT,
  token_budget INTEGER, tokens_used INTEGER, time_used_seconds INTEGER, created_at_ms INTEGER, updated_at_ms INTEGER);
INSERT INTO thread_goals VALUES ('019fa000-0000-7000-8000-000000000001', 'g-1', 'pytest exits with 0', 'budget_limited', 200000, 61000, 141, 1795168800000, 1795168950000);

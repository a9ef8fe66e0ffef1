CREATE TABLE stage1_outputs (thread_id TEXT PRIMARY KEY, source_updated_at INTEGER NOT NULL, raw_memory TEXT NOT NULL, rollout_summary TEXT NOT NULL,
  rollout_slug TEXT, generated_at INTEGER NOT NULL, usage_count INTEGER, last_usage INTEGER, selected_for_phase2 INTEGER NOT NULL DEFAULT 0);
INSERT INTO stage1_outputs VALUES ('019fa000-0000-7000-8000-000000000001', 1795168925, '', '', 'fix_cart_rounding', 1795168930, 3, 1795169000, 1);

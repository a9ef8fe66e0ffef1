CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, slug text NOT NULL, directory text NOT NULL,
  title text NOT NULL, version text NOT NULL,  time_created integer NOT NULL, time_updated integer NOT NULL);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, data text NOT NULL);
CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
CREATE INDEX part_session_idx ON part (session_id);
INSERT INTO session VALUES ('ses_01', 'p-1', 'a-slug', '@PROJECT@/web', 'Old work', '1.1.0', 1795168800000, 1795168920000);
INSERT INTO message VALUES ('msg_01', 'ses_01', 1795168800000, 1795168800000, '{"role": "user", "time": {"created": 1795168800000}, "agent": "build", "model": {"providerID": "openai", "modelID": "gpt-5.6"}}');
INSERT INTO message VALUES ('msg_02', 'ses_01', 1795168801000, 1795168801000, '{"role": "assistant", "modelID": "gpt-5.6", "providerID": "openai", "cost": 0.05, "tokens": {"input": 100, "output": 40, "reasoning": 10, "cache": {"read": 8000, "write": 200}}, "time": {"created": 1795168801000, "completed": 1795168860000}, "finish": "stop"}');
INSERT INTO message VALUES ('msg_03', 'ses_01', 1795168861000, 1795168861000, '{"role": "assistant", "modelID": "gpt-5.6", "providerID": "openai", "cost": 0.05, "tokens": {"input": 100, "output": 40, "reasoning": 10, "cache": {"read": 8000, "write": 200}}, "time": {"created": 1795168861000, "completed": 1795168870000}, "finish": "stop"}');
INSERT INTO message VALUES ('msg_04', 'ses_01', 1795168800000, 1795168800000, '{not json');

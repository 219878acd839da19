-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The twheel authors
-- The tables of twheeld in PostgreSQL that stay as long as the store does: see store_pg.c. Times are us since 1970
-- by the server's clock. Whoever changes a table here also writes a step to it from the version before.

-- Not IF NOT EXISTS, which needs a right to the database although the schema is there.
DO $$ BEGIN
	IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'twheel') THEN
		CREATE SCHEMA twheel;
	END IF;
END $$;

-- id is the version of these tables, code a hash of store_pg.sql.
CREATE TABLE twheel.version (id int NOT NULL, code text NOT NULL DEFAULT '');
INSERT INTO twheel.version VALUES (4);

-- Lives, and the names of the machines where their logs are: see twheel.forget().
CREATE TABLE twheel.life (id bigint PRIMARY KEY, name text NOT NULL);
-- A part has no owner if node is NULL, or a life that was buried.
CREATE TABLE twheel.part (id int PRIMARY KEY, node bigint) WITH (fillfactor = 50);
INSERT INTO twheel.part SELECT generate_series(0, 63);

CREATE TABLE twheel.job (
	id		bigserial PRIMARY KEY,
	name		text UNIQUE,
	rev		bigint NOT NULL DEFAULT 1,
	paused		bigint NOT NULL DEFAULT 0,
	def		text NOT NULL,
	once		bigint NOT NULL
);
CREATE TABLE twheel.due (
	id		bigserial PRIMARY KEY,
	job		bigint NOT NULL,
	part		int NOT NULL GENERATED ALWAYS AS (CAST(job & 63 AS int)) STORED,
	at		bigint NOT NULL,
	off		smallint NOT NULL DEFAULT 0,
	main		smallint NOT NULL,
	key		text,
	arg		text
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01);
CREATE INDEX due_at ON twheel.due (at) WHERE off = 0;
CREATE UNIQUE INDEX due_key ON twheel.due (job, key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX due_main ON twheel.due (job) WHERE main = 1;
CREATE TABLE twheel.running (
	id		bigint,
	at		bigint,
	job		bigint NOT NULL,
	life		bigint NOT NULL,
	attempt		bigint NOT NULL,
	tries		bigint NOT NULL,
	state		smallint NOT NULL,
	missed		bigint NOT NULL,
	wake		bigint NOT NULL,
	fired		bigint NOT NULL,
	arg		text,
	PRIMARY KEY (id, at)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01);
CREATE TABLE twheel.history (
	seq		bigserial PRIMARY KEY,
	id		bigint NOT NULL,
	at		bigint NOT NULL,
	job		bigint NOT NULL,
	life		bigint NOT NULL,
	attempt		bigint NOT NULL,
	outcome		smallint NOT NULL,
	more		smallint NOT NULL,
	missed		bigint NOT NULL,
	status		bigint NOT NULL,
	fired		bigint NOT NULL,
	began		bigint NOT NULL,
	ended		bigint NOT NULL,
	dropped		bigint NOT NULL
);
CREATE INDEX history_job ON twheel.history (job, seq);
CREATE INDEX history_id ON twheel.history (id, at);
CREATE INDEX history_life ON twheel.history (life, dropped);
CREATE TABLE twheel.day_off (calendar text, day bigint, PRIMARY KEY (calendar, day));
CREATE TABLE twheel.calendar (name text PRIMARY KEY);
-- News for other lives: see enum news_type. A row only says where to look, or what is asked for.
CREATE TABLE twheel.inbox (
	xid		bigint NOT NULL DEFAULT CAST(CAST(pg_current_xact_id() AS text) AS bigint),
	made		timestamptz NOT NULL DEFAULT now(),
	life		bigint NOT NULL,
	type		smallint NOT NULL,
	job		bigint NOT NULL,
	id		bigint NOT NULL,
	at		bigint NOT NULL
);
CREATE INDEX inbox_xid ON twheel.inbox (xid);
CREATE INDEX inbox_made ON twheel.inbox (made);

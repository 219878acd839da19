-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The twheel authors
-- The tables of runners and of what they run, which all kinds of stores have from version 2 of the tables on. See
-- struct runner and struct task in store.h.
CREATE TABLE runner (id text PRIMARY KEY, pool text NOT NULL, name text NOT NULL, until bigint NOT NULL);
CREATE TABLE task (id bigint, at bigint, shard bigint, shards bigint NOT NULL, job bigint NOT NULL, pool text,
	prio bigint NOT NULL, attempt bigint NOT NULL, state bigint NOT NULL, outcome bigint NOT NULL,
	status bigint NOT NULL, killed bigint NOT NULL, runner text, life bigint NOT NULL, until bigint NOT NULL,
	began bigint NOT NULL, wants text, wants_until bigint NOT NULL, PRIMARY KEY (id, at, shard));
CREATE INDEX task_pool ON task (pool, state);
CREATE INDEX task_runner ON task (runner);

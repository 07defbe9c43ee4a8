-- Made by a control service of schema version 5, in 2100: old rows are forgotten.
CREATE TABLE public.tenfold_answers (
    key character varying(64) NOT NULL,
    fingerprint character varying(64) NOT NULL,
    state character varying(16) NOT NULL,
    owner character varying(32) NOT NULL,
    created double precision NOT NULL,
    status integer,
    headers text,
    body bytea
);
CREATE TABLE public.tenfold_clusters (
    name character varying(63) NOT NULL,
    uid character varying(32) NOT NULL,
    created double precision NOT NULL,
    version bigint NOT NULL,
    jobs text NOT NULL,
    stop_with_workers integer DEFAULT 0 NOT NULL
);
CREATE TABLE public.tenfold_events (
    id bigint NOT NULL,
    "time" double precision NOT NULL,
    kind character varying(16) NOT NULL,
    action character varying(32) NOT NULL,
    object text NOT NULL,
    message text NOT NULL,
    cluster character varying(63),
    run character varying(32),
    data text NOT NULL
);
CREATE SEQUENCE public.tenfold_events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.tenfold_events_id_seq OWNED BY public.tenfold_events.id;
CREATE TABLE public.tenfold_leases (
    id character varying(32) NOT NULL,
    cluster character varying(63) NOT NULL,
    job character varying(63) NOT NULL,
    task_index integer NOT NULL,
    incarnation character varying(64) NOT NULL,
    ttl double precision NOT NULL,
    state character varying(16) NOT NULL,
    outcome character varying(16),
    reason text,
    exit_code integer,
    ended double precision,
    renewals bigint NOT NULL
);
CREATE TABLE public.tenfold_meta (
    key character varying(64) NOT NULL,
    value text NOT NULL
);
CREATE TABLE public.tenfold_progress (
    run character varying(32) NOT NULL,
    job character varying(63) NOT NULL,
    task_index integer NOT NULL,
    body text NOT NULL
);
CREATE TABLE public.tenfold_runs (
    id character varying(32) NOT NULL,
    submission_id character varying(63) NOT NULL,
    fingerprint character varying(64) NOT NULL,
    launcher character varying(16) NOT NULL,
    submission text NOT NULL,
    created double precision NOT NULL,
    state character varying(16) NOT NULL,
    reason text NOT NULL,
    version bigint NOT NULL,
    started double precision,
    ended double precision,
    attempt integer NOT NULL,
    restarts integer NOT NULL,
    tasks text NOT NULL,
    supervisor text,
    stop text,
    reports bigint NOT NULL
);
CREATE TABLE public.tenfold_sessions (
    id character varying(32) NOT NULL,
    cluster character varying(63) NOT NULL,
    job character varying(63) NOT NULL,
    task_index integer NOT NULL,
    incarnation character varying(64) NOT NULL,
    target character varying(320) NOT NULL,
    handle character varying(256) NOT NULL,
    graph_version bigint NOT NULL,
    created double precision NOT NULL
);
CREATE TABLE public.tenfold_tasks (
    cluster character varying(63) NOT NULL,
    job character varying(63) NOT NULL,
    task_index integer NOT NULL,
    state character varying(16) NOT NULL,
    since double precision NOT NULL,
    reason text NOT NULL,
    address character varying(300),
    incarnation character varying(64),
    devices text NOT NULL,
    lease_id character varying(32),
    exit_code integer
);
ALTER TABLE ONLY public.tenfold_events ALTER COLUMN id SET DEFAULT nextval('public.tenfold_events_id_seq'::regclass);
INSERT INTO public.tenfold_answers VALUES ('kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk', 'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff', 'done', 'oooooooooooooooooooooooooooooooo', 4102444804, 200, '[["content-type", "application/json"]]', '\x7b2261223a2022c3a900227d');
INSERT INTO public.tenfold_answers VALUES ('rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr', 'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff', 'running', 'oooooooooooooooooooooooooooooooo', 4102444804, NULL, NULL, NULL);
INSERT INTO public.tenfold_clusters VALUES ('default', 'c0ffee', 4102444800, 3, '[["ps", 1], ["worker", 1]]', 1);
INSERT INTO public.tenfold_events VALUES (1, 4102444800, 'cluster', 'declared', 'default', 'its jobs are ps=1, worker=1', 'default', NULL, '{}');
INSERT INTO public.tenfold_leases VALUES ('lease-1', 'default', 'ps', 0, 'a', 30, 'live', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.tenfold_leases VALUES ('lease-2', 'default', 'worker', 0, 'b', 30, 'ended', 'finished', 'finished with exit code 0', 0, 4102444802.5, 4);
INSERT INTO public.tenfold_meta VALUES ('schema_version', '5');
INSERT INTO public.tenfold_progress VALUES ('run-1', 'worker', 0, '{"updated": 4102444806.0, "steps": 3, "global_step": 3, "steps_per_second": 1.0, "curves": {}, "checkpoints": [], "figures": {}}');
INSERT INTO public.tenfold_runs VALUES ('run-1', 'once', 'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff', 'external', '{"entrypoint": ["python", "t.py"], "working_dir": null, "package": null, "environment": {}, "jobs": {"worker": 1}, "success": "all", "restarts": {"limit": 0, "gang": true, "backoff": 1.0, "longest_backoff": 60.0}, "deadline": null, "grace": 30.0, "stop_grace": 10.0, "guide_flags": false, "as_tensorflow": false}', 4102444805, 'SUCCEEDED', 'every worker has finished', 4, 4102444806, 4102444807, 1, 0, '[]', '{"host": "h", "pid": 7}', NULL, 0);
INSERT INTO public.tenfold_sessions VALUES ('5e55', 'default', 'ps', 0, 'a', 'grpc://127.0.0.1:2222', '0000000000000001', 1, 4102444803);
INSERT INTO public.tenfold_tasks VALUES ('default', 'ps', 0, 'ready', 4102444801.5, 'registered', '127.0.0.1:2222', 'a', '[]', 'lease-1', NULL);
INSERT INTO public.tenfold_tasks VALUES ('default', 'worker', 0, 'finished', 4102444802.5, 'finished with exit code 0', '127.0.0.1:2223', 'b', '[]', NULL, 0);
SELECT pg_catalog.setval('public.tenfold_events_id_seq', 2, true);
ALTER TABLE ONLY public.tenfold_answers
    ADD CONSTRAINT tenfold_answers_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.tenfold_clusters
    ADD CONSTRAINT tenfold_clusters_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.tenfold_events
    ADD CONSTRAINT tenfold_events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tenfold_leases
    ADD CONSTRAINT tenfold_leases_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tenfold_meta
    ADD CONSTRAINT tenfold_meta_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.tenfold_progress
    ADD CONSTRAINT tenfold_progress_pkey PRIMARY KEY (run, job, task_index);
ALTER TABLE ONLY public.tenfold_runs
    ADD CONSTRAINT tenfold_runs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tenfold_runs
    ADD CONSTRAINT tenfold_runs_submission_id_key UNIQUE (submission_id);
ALTER TABLE ONLY public.tenfold_sessions
    ADD CONSTRAINT tenfold_sessions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tenfold_tasks
    ADD CONSTRAINT tenfold_tasks_pkey PRIMARY KEY (cluster, job, task_index);
CREATE INDEX tenfold_answers_created ON public.tenfold_answers USING btree (created);
CREATE INDEX tenfold_events_time ON public.tenfold_events USING btree ("time");
CREATE INDEX tenfold_leases_state ON public.tenfold_leases USING btree (state, ended);
CREATE INDEX tenfold_runs_created ON public.tenfold_runs USING btree (created, id);
CREATE INDEX tenfold_runs_state ON public.tenfold_runs USING btree (state);
ALTER TABLE ONLY public.tenfold_leases
    ADD CONSTRAINT tenfold_leases_cluster_fkey FOREIGN KEY (cluster) REFERENCES public.tenfold_clusters(name);
ALTER TABLE ONLY public.tenfold_tasks
    ADD CONSTRAINT tenfold_tasks_cluster_fkey FOREIGN KEY (cluster) REFERENCES public.tenfold_clusters(name);

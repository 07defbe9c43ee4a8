-- Made by a control service of schema version 1, in 2100: old rows are forgotten.
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
    jobs text NOT NULL
);
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
INSERT INTO public.tenfold_answers VALUES ('kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk', 'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff', 'done', 'oooooooooooooooooooooooooooooooo', 4102444804, 200, '[["content-type", "application/json"]]', '\x7b2261223a2022c3a900227d');
INSERT INTO public.tenfold_answers VALUES ('rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr', 'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff', 'running', 'oooooooooooooooooooooooooooooooo', 4102444804, NULL, NULL, NULL);
INSERT INTO public.tenfold_clusters VALUES ('default', 'c0ffee', 4102444800, 3, '[["ps", 1], ["worker", 1]]');
INSERT INTO public.tenfold_leases VALUES ('lease-1', 'default', 'ps', 0, 'a', 30, 'live', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.tenfold_leases VALUES ('lease-2', 'default', 'worker', 0, 'b', 30, 'ended', 'finished', 'finished with exit code 0', 0, 4102444802.5, 4);
INSERT INTO public.tenfold_meta VALUES ('schema_version', '1');
INSERT INTO public.tenfold_sessions VALUES ('5e55', 'default', 'ps', 0, 'a', 'grpc://127.0.0.1:2222', '0000000000000001', 1, 4102444803);
INSERT INTO public.tenfold_tasks VALUES ('default', 'ps', 0, 'ready', 4102444801.5, 'registered', '127.0.0.1:2222', 'a', '[]', 'lease-1', NULL);
INSERT INTO public.tenfold_tasks VALUES ('default', 'worker', 0, 'finished', 4102444802.5, 'finished with exit code 0', '127.0.0.1:2223', 'b', '[]', NULL, 0);
ALTER TABLE ONLY public.tenfold_answers
    ADD CONSTRAINT tenfold_answers_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.tenfold_clusters
    ADD CONSTRAINT tenfold_clusters_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.tenfold_leases
    ADD CONSTRAINT tenfold_leases_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tenfold_meta
    ADD CONSTRAINT tenfold_meta_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.tenfold_sessions
    ADD CONSTRAINT tenfold_sessions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tenfold_tasks
    ADD CONSTRAINT tenfold_tasks_pkey PRIMARY KEY (cluster, job, task_index);
CREATE INDEX tenfold_answers_created ON public.tenfold_answers USING btree (created);
CREATE INDEX tenfold_leases_state ON public.tenfold_leases USING btree (state, ended);
ALTER TABLE ONLY public.tenfold_leases
    ADD CONSTRAINT tenfold_leases_cluster_fkey FOREIGN KEY (cluster) REFERENCES public.tenfold_clusters(name);
ALTER TABLE ONLY public.tenfold_tasks
    ADD CONSTRAINT tenfold_tasks_cluster_fkey FOREIGN KEY (cluster) REFERENCES public.tenfold_clusters(name);

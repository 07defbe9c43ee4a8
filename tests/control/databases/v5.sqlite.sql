-- Made by a control service of schema version 5, in 2100: old rows are forgotten.
BEGIN TRANSACTION;
CREATE TABLE tenfold_answers (
	"key" VARCHAR(64) NOT NULL, 
	fingerprint VARCHAR(64) NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	owner VARCHAR(32) NOT NULL, 
	created FLOAT NOT NULL, 
	status INTEGER, 
	headers TEXT, 
	body BLOB, 
	PRIMARY KEY ("key")
);
INSERT INTO "tenfold_answers" VALUES('kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','done','oooooooooooooooooooooooooooooooo',4102444804.0,200,'[["content-type", "application/json"]]',X'7B2261223A2022C3A900227D');
INSERT INTO "tenfold_answers" VALUES('rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','running','oooooooooooooooooooooooooooooooo',4102444804.0,NULL,NULL,NULL);
CREATE TABLE tenfold_clusters (
	name VARCHAR(63) NOT NULL, 
	uid VARCHAR(32) NOT NULL, 
	created FLOAT NOT NULL, 
	version BIGINT NOT NULL, 
	jobs TEXT NOT NULL, 
	stop_with_workers INTEGER DEFAULT '0' NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "tenfold_clusters" VALUES('default','c0ffee',4102444800.0,3,'[["ps", 1], ["worker", 1]]',1);
CREATE TABLE tenfold_events (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	time FLOAT NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	action VARCHAR(32) NOT NULL, 
	object TEXT NOT NULL, 
	message TEXT NOT NULL, 
	cluster VARCHAR(63), 
	run VARCHAR(32), 
	data TEXT NOT NULL
);
INSERT INTO "tenfold_events" VALUES(1,4102444800.0,'cluster','declared','default','its jobs are ps=1, worker=1','default',NULL,'{}');
CREATE TABLE tenfold_leases (
	id VARCHAR(32) NOT NULL, 
	cluster VARCHAR(63) NOT NULL, 
	job VARCHAR(63) NOT NULL, 
	task_index INTEGER NOT NULL, 
	incarnation VARCHAR(64) NOT NULL, 
	ttl FLOAT NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	outcome VARCHAR(16), 
	reason TEXT, 
	exit_code INTEGER, 
	ended FLOAT, 
	renewals BIGINT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(cluster) REFERENCES tenfold_clusters (name)
);
INSERT INTO "tenfold_leases" VALUES('lease-1','default','ps',0,'a',30.0,'live',NULL,NULL,NULL,NULL,0);
INSERT INTO "tenfold_leases" VALUES('lease-2','default','worker',0,'b',30.0,'ended','finished','finished with exit code 0',0,4102444802.5,4);
CREATE TABLE tenfold_meta (
	"key" VARCHAR(64) NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "tenfold_meta" VALUES('schema_version','5');
CREATE TABLE tenfold_progress (
	run VARCHAR(32) NOT NULL, 
	job VARCHAR(63) NOT NULL, 
	task_index INTEGER NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (run, job, task_index)
);
INSERT INTO "tenfold_progress" VALUES('run-1','worker',0,'{"updated": 4102444806.0, "steps": 3, "global_step": 3, "steps_per_second": 1.0, "curves": {}, "checkpoints": [], "figures": {}}');
CREATE TABLE tenfold_runs (
	id VARCHAR(32) NOT NULL, 
	submission_id VARCHAR(63) NOT NULL, 
	fingerprint VARCHAR(64) NOT NULL, 
	launcher VARCHAR(16) NOT NULL, 
	submission TEXT NOT NULL, 
	created FLOAT NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	reason TEXT NOT NULL, 
	version BIGINT NOT NULL, 
	started FLOAT, 
	ended FLOAT, 
	attempt INTEGER NOT NULL, 
	restarts INTEGER NOT NULL, 
	tasks TEXT NOT NULL, 
	supervisor TEXT, 
	stop TEXT, 
	reports BIGINT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (submission_id)
);
INSERT INTO "tenfold_runs" VALUES('run-1','once','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','external','{"entrypoint": ["python", "t.py"], "working_dir": null, "package": null, "environment": {}, "jobs": {"worker": 1}, "success": "all", "restarts": {"limit": 0, "gang": true, "backoff": 1.0, "longest_backoff": 60.0}, "deadline": null, "grace": 30.0, "stop_grace": 10.0, "guide_flags": false, "as_tensorflow": false}',4102444805.0,'SUCCEEDED','every worker has finished',4,4102444806.0,4102444807.0,1,0,'[]','{"host": "h", "pid": 7}',NULL,0);
CREATE TABLE tenfold_sessions (
	id VARCHAR(32) NOT NULL, 
	cluster VARCHAR(63) NOT NULL, 
	job VARCHAR(63) NOT NULL, 
	task_index INTEGER NOT NULL, 
	incarnation VARCHAR(64) NOT NULL, 
	target VARCHAR(320) NOT NULL, 
	handle VARCHAR(256) NOT NULL, 
	graph_version BIGINT NOT NULL, 
	created FLOAT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "tenfold_sessions" VALUES('5e55','default','ps',0,'a','grpc://127.0.0.1:2222','0000000000000001',1,4102444803.0);
CREATE TABLE tenfold_tasks (
	cluster VARCHAR(63) NOT NULL, 
	job VARCHAR(63) NOT NULL, 
	task_index INTEGER NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	since FLOAT NOT NULL, 
	reason TEXT NOT NULL, 
	address VARCHAR(300), 
	incarnation VARCHAR(64), 
	devices TEXT NOT NULL, 
	lease_id VARCHAR(32), 
	exit_code INTEGER, 
	PRIMARY KEY (cluster, job, task_index), 
	FOREIGN KEY(cluster) REFERENCES tenfold_clusters (name)
);
INSERT INTO "tenfold_tasks" VALUES('default','ps',0,'ready',4102444801.5,'registered','127.0.0.1:2222','a','[]','lease-1',NULL);
INSERT INTO "tenfold_tasks" VALUES('default','worker',0,'finished',4102444802.5,'finished with exit code 0','127.0.0.1:2223','b','[]',NULL,0);
CREATE INDEX tenfold_answers_created ON tenfold_answers (created);
CREATE INDEX tenfold_runs_state ON tenfold_runs (state);
CREATE INDEX tenfold_runs_created ON tenfold_runs (created, id);
CREATE INDEX tenfold_events_time ON tenfold_events (time);
CREATE INDEX tenfold_leases_state ON tenfold_leases (state, ended);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('tenfold_events',2);
COMMIT;

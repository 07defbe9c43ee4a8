-- Made by a control service of schema version 1, in 2100: old rows are forgotten.
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
	PRIMARY KEY (name)
);
INSERT INTO "tenfold_clusters" VALUES('default','c0ffee',4102444800.0,3,'[["ps", 1], ["worker", 1]]');
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
INSERT INTO "tenfold_meta" VALUES('schema_version','1');
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
CREATE INDEX tenfold_leases_state ON tenfold_leases (state, ended);
COMMIT;

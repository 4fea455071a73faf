-- The lines of elastic_events as a view with typed columns.
--
-- The files are named by a variable, as a path, a pattern or a list of these.
-- It is set before the view is made, and may be set anew at any time:
--
--     SET VARIABLE elastic_events_files = '/logs/*.jsonl';
--
-- Without it they are all *.jsonl of the current folder. What is no line, such
-- as one that was torn, is left out. `line` is the whole line: what was bound
-- is there only. `time` is in UTC.

CREATE OR REPLACE VIEW events AS
SELECT
    try_cast(line ->> '$.timestamp' AS BIGINT) AS timestamp,
    try_cast(line ->> '$.time' AS TIMESTAMP) AS time,
    line ->> '$.level' AS level,
    line ->> '$.kind' AS kind,
    line ->> '$.name' AS name,
    line ->> '$.message' AS message,
    line ->> '$.source' AS source,
    line ->> '$.hostname' AS hostname,
    try_cast(line ->> '$.pid' AS BIGINT) AS pid,
    try_cast(line ->> '$.seq' AS BIGINT) AS seq,
    try_cast(line ->> '$.truncated' AS BOOLEAN) AS truncated,
    line ->> '$.run_id' AS run_id,
    try_cast(line ->> '$.rank' AS BIGINT) AS rank,
    try_cast(line ->> '$.local_rank' AS BIGINT) AS local_rank,
    try_cast(line ->> '$.restart' AS BIGINT) AS restart,
    line ->> '$.node_state' AS node_state,
    try_cast(line ->> '$.local_id' AS BIGINT) AS local_id,
    line ->> '$.master_endpoint' AS master_endpoint,
    line ->> '$.logger' AS logger,
    line ->> '$.error_trace' AS error_trace,
    from_json(line -> '$.worker', '{
        "local_rank": "BIGINT",
        "role_rank": "BIGINT",
        "role_world_size": "BIGINT",
        "group_world_size": "BIGINT",
        "exit_code": "BIGINT",
        "pid": "BIGINT",
        "entry_point": "VARCHAR",
        "error": {
            "type": "VARCHAR",
            "message": "VARCHAR",
            "timestamp": "BIGINT"
        }
    }') AS worker,
    line -> '$.metadata' AS metadata,
    line,
    filename AS file
FROM read_json(
    coalesce(getvariable('elastic_events_files'), '*.jsonl'),
    format = 'newline_delimited',
    records = false,
    columns = {line: 'JSON'},
    ignore_errors = true,
    filename = true
)
WHERE (line -> '$.timestamp') IS NOT NULL;

-- An index, typed. A report of another program has no id: its path stands in.
CREATE MACRO index_lines(file) AS TABLE
SELECT coalesce(report_id, path) AS id, *
FROM read_json(file, format = 'newline_delimited', maximum_object_size = 33554432, columns = {
    path: 'VARCHAR', bytes: 'UBIGINT', app: 'VARCHAR', version: 'VARCHAR', build_id: 'VARCHAR',
    report_id: 'VARCHAR', session_id: 'VARCHAR', report_type: 'VARCHAR', gap_key: 'VARCHAR',
    channel: 'VARCHAR', triggered_at: 'TIMESTAMP', started_at: 'TIMESTAMP', session_end: 'VARCHAR',
    signal: 'VARCHAR', os: 'VARCHAR', arch: 'VARCHAR', kernel: 'VARCHAR', machine: 'VARCHAR',
    signature: 'VARCHAR', weak_signature: 'BOOLEAN', pid: 'UBIGINT', process_key: 'VARCHAR',
    complete: 'BOOLEAN', deadlock: 'BOOLEAN', deadlocked_threads: 'VARCHAR[]',
    critical_findings: 'UBIGINT', finding_count: 'UBIGINT', finding_ids: 'VARCHAR[]', finding: 'VARCHAR',
    cpu_percent: 'DOUBLE', thread_count: 'UBIGINT',
    rss_kb: 'UBIGINT', uptime_secs: 'DOUBLE', busiest_thread: 'VARCHAR',
    busiest_thread_cpu_percent: 'DOUBLE', thread_names: 'VARCHAR[]', thread_counts: 'UBIGINT[]',
    thread_cpu_percents: 'DOUBLE[]', process_keys: 'VARCHAR[]', process_names: 'VARCHAR[]',
    process_rss_kb: 'UBIGINT[]', process_cpu_percents: 'DOUBLE[]',
    open_files: 'UBIGINT', heap_allocated_bytes: 'UBIGINT',
    gap_key_count: 'UBIGINT', gap_keys: 'VARCHAR[]', tags: 'VARCHAR[]'});

CREATE TABLE reports AS
SELECT DISTINCT ON (id) * FROM index_lines('index.jsonl') ORDER BY id, path;

CREATE OR REPLACE TEMPORARY VIEW index_lines (
    path STRING, bytes BIGINT, app STRING, version STRING, build_id STRING, report_id STRING,
    session_id STRING, report_type STRING, gap_key STRING, channel STRING, triggered_at TIMESTAMP,
    started_at TIMESTAMP, session_end STRING, signal STRING, os STRING, arch STRING,
    kernel STRING, machine STRING, complete BOOLEAN, deadlock BOOLEAN, deadlocked_threads ARRAY<STRING>,
    critical_findings BIGINT, finding_count BIGINT, finding_ids ARRAY<STRING>, finding STRING, cpu_percent DOUBLE,
    thread_count BIGINT, rss_kb BIGINT, uptime_secs DOUBLE, busiest_thread STRING,
    busiest_thread_cpu_percent DOUBLE, thread_names ARRAY<STRING>, thread_counts ARRAY<BIGINT>,
    thread_cpu_percents ARRAY<DOUBLE>, open_files BIGINT, heap_allocated_bytes BIGINT,
    gap_key_count BIGINT, gap_keys ARRAY<STRING>, tags ARRAY<STRING>
) USING json OPTIONS (path 'index/*.jsonl');

CREATE OR REPLACE TEMPORARY VIEW reports AS
SELECT * FROM (
    SELECT *, row_number() OVER (PARTITION BY coalesce(report_id, path) ORDER BY path) AS copy
    FROM index_lines
) WHERE copy = 1;

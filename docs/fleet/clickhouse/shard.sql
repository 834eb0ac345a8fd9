CREATE TABLE reports_shard (
    path String, bytes UInt64, app String, version String, build_id String,
    report_id String, session_id String, report_type String, gap_key String,
    channel String, triggered_at String, started_at String, session_end String,
    signal String, os String, arch String, kernel String, machine String,
    signature String, weak_signature Nullable(UInt8), pid Nullable(UInt64), process_key String,
    complete Nullable(UInt8), deadlock Nullable(UInt8), deadlocked_threads Array(String),
    critical_findings UInt64, finding_count UInt64, finding_ids Array(String), finding String,
    cpu_percent Nullable(Float64), thread_count Nullable(UInt64),
    rss_kb Nullable(UInt64), uptime_secs Nullable(Float64), busiest_thread String,
    busiest_thread_cpu_percent Nullable(Float64), thread_names Array(String),
    thread_counts Array(UInt64), thread_cpu_percents Array(Float64), process_keys Array(String),
    process_names Array(String), process_rss_kb Array(UInt64), process_cpu_percents Array(Float64),
    open_files Nullable(UInt64),
    heap_allocated_bytes Nullable(UInt64), gap_key_count Nullable(UInt64),
    gap_keys Array(String), tags Array(String)
)
ENGINE = ReplacingMergeTree
PARTITION BY substring(triggered_at, 1, 7)
ORDER BY (app, version, if(report_id = '', path, report_id))

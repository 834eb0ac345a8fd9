SELECT gap,
       count(DISTINCT session_id) FILTER (WHERE version = '1.11.0') AS sessions,
       count(*) FILTER (WHERE version = '1.11.0') AS reports,
       min(triggered_at) FILTER (WHERE version = '1.11.0') AS first_seen,
       min_by(path, triggered_at) FILTER (WHERE version = '1.11.0') AS first_report
FROM reports LATERAL VIEW explode(gap_keys) list AS gap
WHERE app = 'viewer'
GROUP BY gap
HAVING min_by(version, cast(regexp_extract_all(version, '([0-9]+)') AS ARRAY<BIGINT>)) = '1.11.0'
ORDER BY sessions DESC, gap;

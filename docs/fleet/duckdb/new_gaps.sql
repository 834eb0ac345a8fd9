SELECT gap,
       count(DISTINCT session_id) FILTER (version = '1.11.0') AS sessions,
       count(*) FILTER (version = '1.11.0') AS reports,
       min(triggered_at) FILTER (version = '1.11.0') AS first_seen,
       arg_min(path, triggered_at) FILTER (version = '1.11.0') AS first_report
FROM (SELECT *, unnest(gap_keys) AS gap FROM reports WHERE app = 'viewer')
GROUP BY gap
HAVING arg_min(version, regexp_extract_all(version, '[0-9]+')::UBIGINT[]) = '1.11.0'
ORDER BY sessions DESC, gap;

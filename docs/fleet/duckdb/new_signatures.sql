SELECT signature,
       count(DISTINCT machine) FILTER (version = '1.11.0') AS machines,
       count(*) FILTER (version = '1.11.0') AS reports,
       min(triggered_at) FILTER (version = '1.11.0') AS first_seen,
       arg_min(path, triggered_at) FILTER (version = '1.11.0') AS first_report
FROM reports
WHERE app = 'viewer' AND signature IS NOT NULL
GROUP BY signature
HAVING arg_min(version, regexp_extract_all(version, '[0-9]+')::UBIGINT[]) = '1.11.0'
ORDER BY machines DESC, reports DESC, signature;

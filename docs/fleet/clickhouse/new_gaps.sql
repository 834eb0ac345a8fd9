SELECT gap,
       uniqExactIf(session_id, version = '1.11.0') AS sessions,
       countIf(version = '1.11.0') AS reports,
       minIf(triggered_at, version = '1.11.0') AS first_seen,
       argMinIf(path, triggered_at, version = '1.11.0') AS first_report
FROM reports FINAL
ARRAY JOIN gap_keys AS gap
WHERE app = 'viewer'
GROUP BY gap
HAVING argMin(version, arrayMap(n -> toUInt64(n), extractAll(version, '[0-9]+'))) = '1.11.0'
ORDER BY sessions DESC, gap

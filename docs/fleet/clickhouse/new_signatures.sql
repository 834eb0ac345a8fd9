SELECT signature,
       uniqExactIf(machine, version = '1.11.0' AND machine != '') AS machines,
       countIf(version = '1.11.0') AS reports,
       minIf(triggered_at, version = '1.11.0') AS first_seen,
       argMinIf(path, triggered_at, version = '1.11.0') AS first_report
FROM reports FINAL
WHERE app = 'viewer' AND signature != ''
GROUP BY signature
HAVING argMin(version, arrayMap(n -> toUInt64(n), extractAll(version, '[0-9]+'))) = '1.11.0'
ORDER BY machines DESC, reports DESC, signature

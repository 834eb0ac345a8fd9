SELECT machine,
       count() AS reports,
       countIf(critical_findings > 0) AS critical,
       maxIf(triggered_at, critical_findings > 0) AS last_seen,
       argMaxIf(path, triggered_at, critical_findings > 0) AS last_report
FROM reports FINAL
WHERE machine != ''
GROUP BY machine
HAVING critical > 0
ORDER BY critical DESC, machine
LIMIT 20

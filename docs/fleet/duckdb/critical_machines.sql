SELECT machine,
       count(*) AS reports,
       count(*) FILTER (critical_findings > 0) AS critical,
       max(triggered_at) FILTER (critical_findings > 0) AS last_seen,
       arg_max(path, triggered_at) FILTER (critical_findings > 0) AS last_report
FROM reports
WHERE machine IS NOT NULL
GROUP BY machine
HAVING critical > 0
ORDER BY critical DESC, machine
LIMIT 20;

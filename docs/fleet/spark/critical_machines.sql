SELECT machine,
       count(*) AS reports,
       count(*) FILTER (WHERE critical_findings > 0) AS critical,
       max(triggered_at) FILTER (WHERE critical_findings > 0) AS last_seen,
       max_by(path, triggered_at) FILTER (WHERE critical_findings > 0) AS last_report
FROM reports
WHERE machine IS NOT NULL
GROUP BY machine
HAVING count(*) FILTER (WHERE critical_findings > 0) > 0
ORDER BY critical DESC, machine
LIMIT 20;

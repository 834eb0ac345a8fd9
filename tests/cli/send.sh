#!/bin/sh
# bugpack send: what arrives where, what is tried again or refused, and what is never shown.
# shellcheck disable=SC2016,SC2034 # what await runs
. "$(dirname "$0")/lib.sh"
need python3 openssl jq unzip sha256sum
cd "$scratch" || exit 1
unset http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY
export HOME="$scratch" XDG_CONFIG_HOME="$scratch/config"
mkdir -p config/bugpack inbox tls plain
start sleep 1000
target=$pid
capture --description 'a word of its own'
report=one.zip
cp "$zip" one.zip
capture --window 0
cp "$zip" two.zip
rm -r reports
id=$(value one.zip metadata.json .report_id)
sum=$(sha256sum one.zip | cut -d' ' -f1)

openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=bugpack-test -keyout key.pem -out cert.pem \
    -addext 'subjectAltName=IP:127.0.0.1,DNS:localhost' >out.openssl 2>&1 || skip 'openssl makes no certificate'
start python3 "$source_dir/tests/support/report_server.py" "$scratch/tls" cert.pem key.pem
start python3 "$source_dir/tests/support/report_server.py" "$scratch/plain"
await '[ -s tls/port ] && [ -s plain/port ]'
https=https://127.0.0.1:$(cat tls/port)
http=http://127.0.0.1:$(cat plain/port)

# put STATUS URL [ARGUMENT...]: sends the report there without a question.
put() {
    put_status=$1 put_url=$2
    shift 2
    exits "$put_status" send --yes --cacert cert.pem --to "$put_url" "$@" one.zip
}

# last FILTER: of the last request that the TLS server has had.
last() {
    tail -n 1 tls/requests | jq -r "$1"
}

if ! "$BUGPACK" send -y --to "$http/put/x" one.zip >out 2>err; then
    grep -q libcurl err && skip "$(cat err)"
    wrong 'a PUT over http to this machine fails'
fi

fact 'a PUT over TLS brings the bytes, the id of the report and a type'
put 0 "$https/put/name.zip?X-Amz-Signature=s3cr3t"
expect_no_err
expect_same 'what is printed' "$https/put/name.zip" "$(cat out)"
expect_same 'the request' "PUT /put/name.zip X-Amz-Signature=s3cr3t $sum" \
    "$(last '"\(.method) \(.path) \(.query) \(.sha256)"')"
expect_same 'the key' "$id" "$(last '.headers["idempotency-key"]')"
expect_same 'the type' application/zip "$(last '.headers["content-type"]')"
expect_like 'the agent' 'bugpack/*' "$(last '.headers["user-agent"]')"

fact 'a URL that ends with / gets the name, which is escaped; only such a one takes several reports'
cp one.zip 'a b%?.zip'
exits 0 send -y --cacert cert.pem --to "$https/put/?sig=1" 'a b%?.zip' two.zip
expect_same 'the paths' '/put/a%20b%25%3F.zip /put/two.zip' \
    "$(tail -n 2 tls/requests | jq -r .path | tr '\n' ' ' | sed 's/ $//')"
expect_same 'the query' sig=1 "$(last .query)"
expect_misuse 'a PUT to one URL replaces the report before' send -y --to "$https/put/x" one.zip two.zip

# configure TEXT: the configuration.
configure() {
    printf '%s\n' "$1" >config/bugpack/send.conf
    chmod 600 config/bugpack/send.conf
}
# posts URL [LINE]: sends one report by POST.
posts() {
    configure "[destination \"posted\"]
url = $1
method = POST
${2:-}"
    exits 0 send --yes --cacert cert.pem --to posted one.zip
}

fact 'a POST brings it as it is, a form in a field'
posts "$https/post"
expect_same 'the request' "POST $sum" "$(last '"\(.method) \(.sha256)"')"
posts "$https/form" 'formField = "upload\"file"'
expect_like 'the type' 'multipart/form-data; boundary=*' "$(last '.headers["content-type"]')"
# taken FILE: the parts of the last form, as Python reads them.
cat >parts.py <<'END'
import email, hashlib, json, sys
line = json.loads(open("tls/requests").read().splitlines()[-1])
head = f"Content-Type: {line['headers']['content-type']}\r\n\r\n".encode()
for part in email.message_from_bytes(head + open(f"tls/bodies/{line['body']}", "rb").read()).get_payload():
    body = part.get_payload(decode=True)
    print(part.get_param("name", header="content-disposition"), part.get_filename() or body.decode(),
          part.get_content_type(), hashlib.sha256(body).hexdigest() if part.get_filename() else "")
END
expect_same 'the part' "upload%22file one.zip application/zip $sum" "$(python3 parts.py)"

fact 'a destination of the configuration has its own method, fields, headers and certificates'
configure "# of support
[destination \"support\"]
    url = \"$https/form\" ; a comment
    formField = file
    field = key=reports/\${filename}
    field = \"policy=a=b \\\"c\\\"\"
    header = Authorization: Bearer t0k3nt0k3n
    header = Idempotency-Key: mine
    caCert = $scratch/cert.pem
    consent = always
[destination \"dir\"]
    url = $scratch/inbox"
exits 0 send --to support one.zip
expect_same 'the parts' "key reports/\${filename} text/plain 
policy a=b \"c\" text/plain 
file one.zip application/zip $sum" "$(python3 parts.py)"
expect_same 'the headers' 'Bearer t0k3nt0k3n mine' "$(last '.headers | "\(.authorization) \(."idempotency-key")"')"

fact 'a configuration that others can read, and a mistake in one, are refused with what to do'
chmod 640 config/bugpack/send.conf
exits 1 send --to support one.zip
expect_err 'chmod 600'
configure '[destination "x"]
url = https://h/
wrong = 1'
exits 1 send --to x one.zip
expect_err 'send.conf:3: there is no key "wrong"'
configure '[destination "x"]
url'
exits 1 send --to x one.zip
configure '[destination "x"'
exits 1 send --to x one.zip
expect_err 'send.conf:1: not a section'
configure '[destination "x"]
header = A: b'
exits 1 send --to x one.zip
expect_err '"x" has no url'
configure '[destination "x"]
url = http://example.com/'
exits 1 send --to x one.zip
expect_err 'use https'
exits 1 send --to y one.zip --config /nonexistent
expect_err '/nonexistent'
rm config/bugpack/send.conf
exits 1 send -y --to y one.zip
expect_err 'there is no destination "y"'

fact 'Sentry gets an event with the zip as its attachment'
configure "[destination \"sentry\"]
url = https://k3yk3yk3y@127.0.0.1:$(cat tls/port)/base/42
type = sentry
caCert = $scratch/cert.pem
consent = always"
exits 0 send --to sentry one.zip
expect_same 'what is printed' "$https/base/42" "$(cat out)"
expect_same 'the request' 'POST /base/api/42/envelope/ application/x-sentry-envelope' \
    "$(last '"\(.method) \(.path) \(.headers["content-type"])"')"
expect_like 'the key' 'Sentry sentry_version=7, *, sentry_key=k3yk3yk3y' "$(last '.headers["x-sentry-auth"]')"
python3 - >out 2>err <<'END' || wrong 'the envelope is malformed'
import hashlib, json
line = json.loads(open("tls/requests").read().splitlines()[-1])
rest = open(f"tls/bodies/{line['body']}", "rb").read()
head, rest = rest.split(b"\n", 1)
event_id = json.loads(head)["event_id"]
while rest:
    item, rest = rest.split(b"\n", 1)
    item = json.loads(item)
    body, rest = rest[:item["length"]], rest[item["length"]:]
    assert rest[:1] == b"\n"
    rest = rest[1:]
    if item["type"] == "event":
        event = json.loads(body)
        print(event["event_id"] == event_id, event["platform"], event["message"]["formatted"], event["fingerprint"])
    else:
        print(event_id, item["type"], item["filename"], hashlib.sha256(body).hexdigest())
END
expect_out "True native sleep: bugreport ['sleep', 'bugreport']"
expect_out "$id attachment one.zip $sum"
configure "[destination \"sentry\"]
url = https://h/42
type = sentry"
exits 1 send --to sentry one.zip
expect_err 'the URL of Sentry is a DSN'

fact 'a directory gets a whole copy, and another beside it'
exits 0 send -y --to ./inbox one.zip
expect_same 'the path' ./inbox/one.zip "$(cat out)"
exits 0 send -y --to ./inbox --json one.zip
expect_same 'the event' "sent ./inbox/one-2.zip $id" "$(jq -r '"\(.event) \(.url) \(.report_id)"' out)"
cmp -s one.zip inbox/one.zip || wrong 'it differs'
cmp -s one.zip inbox/one-2.zip || wrong 'the second differs'
cat out >>events.jsonl
expect_same 'the mode' 600 "$(stat -c %a inbox/one.zip)"
exits 1 send -y --to ./nowhere one.zip
expect_err nowhere
expect_same 'the files' 2 "$(find inbox -type f | wc -l)"

fact 'what is no report is not sent'
echo text >text.zip
exits 1 send -y --to ./inbox text.zip one.zip
expect_err text.zip
rm text.zip
expect_same 'the files' 3 "$(find inbox -type f | wc -l)"

fact 'an answer that is no success is an error, with what the server says of it'
for code in 400 401 403 404 413 500 503; do
    put 1 "$https/status/$code"
    expect_err "one.zip: the server answered $code"
    expect_no_out
done
put 1 "$https/s3"
expect_err 'the server answered 403: SignatureDoesNotMatch'

fact 'a redirection is followed to the same server alone, with the whole report'
put 0 "$https/redirect/307/same"
expect_same 'the request' "PUT /put/redirected $sum" "$(last '"\(.method) \(.path) \(.sha256)"')"
posts "$https/redirect/308/path"
expect_same 'the request' "POST /put/redirected $sum" "$(last '"\(.method) \(.path) \(.sha256)"')"
for where in 307/host 307/http 308/host 301/same 302/same 303/same 307/loop; do
    put 1 "$https/redirect/$where"
    expect_err 'a redirection that is not followed'
done
holds 'select(.path == "/put/elsewhere")' plain/requests tls/requests && wrong 'it was followed'

fact 'a connection that breaks, an answer that is too short or too early are failures; one without an end is not'
for how in close silent lies early; do
    put 1 "$https/$how"
    expect_no_out
done
put 0 "$https/endless"

fact 'what is no server, no TLS or no trusted certificate is said'
put 1 "https://127.0.0.1:1/x"
expect_err 'one.zip: '
put 1 "https://127.0.0.1:$(cat plain/port)/x"
exits 1 send --yes --to "$https/put/x" one.zip
expect_err certificate
exits 1 send --yes --cacert one.zip --to "$https/put/x" one.zip

fact 'http is for this machine alone, unless it is allowed'
exits 1 send -y --to http://example.com/x one.zip
expect_err 'use https'
for url in http://127.0.0.1@example.com/ http://localhost.example.com/ 'http://127.0.0.1\@h/' 'https://h/ x' ftp://h/x; do
    exits 1 send -y --to "$url" one.zip
    expect_err 'bugpack: --to: '
done
http_proxy=http://127.0.0.1:1/ exits 0 send -y --to "$http/put/x" one.zip

fact 'https goes through the proxy of the environment'
https_proxy=http://127.0.0.1:1/ put 1 "$https/put/x"

fact 'without consent nothing leaves'
count=$(wc -l <tls/requests)
exits 1 send --cacert cert.pem --to "$https/put/x" one.zip
expect_err 'not sent without consent'
configure "[destination \"x\"]
url = $https/put/x
consent = never"
exits 1 send --yes --cacert cert.pem --to x one.zip
expect_err 'consent = never'

fact 'on a terminal a person sees what is in the report, and decides; a bar shows how far it is'
# answers STATUS ANSWER ARGUMENT...: bugpack send on a terminal; what it shows is in `out`.
answers() {
    wanted_status=$1 answer=$2
    shift 2
    TERM=xterm timeout 60 python3 "$source_dir/tests/support/answer.py" "$answer" "$BUGPACK" send "$@" >out 2>err </dev/null
    expect_status "$wanted_status" $?
}
count=$(wc -l <tls/requests)
answers 1 n --cacert cert.pem --to "$https/put/asked?sig=s3cr3ts3cr3t" one.zip
expect_out 'metadata.json'
expect_out "Send this report to $https/put/asked? [y/N]"
expect_out 'the report is not sent'
expect_same 'the number of requests' "$count" "$(wc -l <tls/requests)"
answers 0 y --cacert cert.pem --to "$https/put/asked?sig=s3cr3ts3cr3t" one.zip
expect_same 'the path' /put/asked "$(last .path)"
expect_out 'one.zip: '
expect_out ' % of '
grep -q s3cr3t out && wrong 'the signature is shown'
answers 0 never --yes --to ./inbox one.zip
grep -q 'Send this' out && wrong 'it asks'
count=$(wc -l <tls/requests)

fact 'a report over the limit is not sent, and --dry-run sends nothing'
put 1 "$https/put/x" --max-bytes 10
expect_err 'one.zip: not sent: it has '
put 0 "$https/put/x?sig=1" --dry-run --json
expect_same 'the event' "would-send one.zip $https/put/x $id" "$(jq -r '"\(.event) \(.path) \(.url) \(.report_id)"' out)"
cat out >>events.jsonl
expect_same 'the number of requests' "$count" "$(wc -l <tls/requests)"

fact 'no signature, password or header is in what is printed, nor in the process list'
configure "[destination \"x\"]
url = $https/tattle?X-Signature=s3cr3ts3cr3t
header = Authorization: Bearer t0k3nt0k3n
caCert = $scratch/cert.pem
consent = always"
exits 1 send --to x --json one.zip
cat out err >said
cat out >>events.jsonl
exits 1 send --yes --cacert cert.pem --json --to "https://user:passw0rd@127.0.0.1:$(cat tls/port)/tattle?sig=s3cr3ts3cr3t" one.zip
cat out err >>said
exits 1 send --yes --json --to "https://user:passw0rd@127.0.0.1:1/tattle?sig=s3cr3ts3cr3t" one.zip
cat out err >>said
grep -q 403 said || wrong 'the server was not reached'
grep -E 's3cr3t|t0k3n|passw0rd' said && wrong 'a secret is shown'
echo "$https/put/line?sig=s3cr3ts3cr3t" | "$BUGPACK" send --yes --cacert cert.pem --to - one.zip >out 2>err ||
    wrong 'a URL of standard input is not taken'
expect_same 'the path' /put/line "$(last .path)"
start "$BUGPACK" send --yes --cacert cert.pem --to "$https/stall?sig=s3cr3ts3cr3t" one.zip
await 'holds "select(.path == \"/stall\")" tls/requests'
tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q 's3cr3t' && wrong 'the process list has it'

fact 'a signal ends it'
kill -TERM "$pid"
wait "$pid"
expect_status 1 $?

fact 'events match the schema'
expect_same 'the number of events' 3 "$(wc -l <events.jsonl)"
expect_schema events.jsonl events.jsonl

fact 'a destination and a report are needed'
expect_misuse 'a report is missing' send --to x
expect_misuse '--to is missing' send one.zip

if command -v nginx >/dev/null || not_tried 'WebDAV (nginx is not installed)'; then
    fact 'nginx takes it by WebDAV over TLS, with the directories above it'
    mkdir -p dav/temp dav/files
    # begin: whether nginx listens; another process may have taken the port meanwhile.
    begin() {
        port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
        cat >nginx.conf <<END
daemon off; user $(id -un); pid $scratch/dav/pid; worker_processes 1;
events { worker_connections 64; }
http {
    access_log off; client_body_temp_path $scratch/dav/temp; proxy_temp_path $scratch/dav/temp;
    fastcgi_temp_path $scratch/dav/temp; uwsgi_temp_path $scratch/dav/temp; scgi_temp_path $scratch/dav/temp;
    server {
        listen 127.0.0.1:$port ssl;
        ssl_certificate $scratch/cert.pem; ssl_certificate_key $scratch/key.pem;
        location / { root $scratch/dav/files; dav_methods PUT; create_full_put_path on; client_max_body_size 10m; }
    }
}
END
        start nginx -e "$scratch/dav/log" -c "$scratch/nginx.conf"
        nginx=$pid
        await '[ -s dav/pid ] || ! kill -0 "$nginx" 2>/dev/null'
        [ -s dav/pid ]
    }
    begin || begin || begin || wrong "nginx does not start: $(tail -n 1 dav/log)"
    put 0 "https://127.0.0.1:$port/machines/a/"
    cmp -s one.zip dav/files/machines/a/one.zip || wrong 'it is not there'
    put 0 "https://127.0.0.1:$port/machines/a/"
    kill "$nginx"
fi

finish

//! `pipetop fleet`, on a fake Prometheus with scripted answers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use support::waiting::ToEnd;

use crate::plain::refused;

/// A result with one run, for an instant query and for a range query.
const VALUE: &str = r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":
    {"run":"slurm-7","user":"anna","kind":"data-bound","cause":"disk","rank":"3","instance":"gpu-01:9977"},
    "value":[1700000000,"0.5"]}]}}"#;
const LINE: &str = r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":
    {"run":"slurm-7"},"values":[[1700000000,"0.5"]]}]},"warnings":["a store is away"]}"#;

/// Returns the answer to a query.
type Body = fn(&str) -> String;
/// The requests that the server received: head and body.
type Requests = Arc<Mutex<Vec<String>>>;

/// Starts a server that answers each request with this status and with the result of `body`.
fn server(status: &'static str, body: Body) -> (String, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let requests = Requests::default();
    let seen = Arc::clone(&requests);
    // Runs until the test program ends.
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let seen = Arc::clone(&seen);
            std::thread::spawn(move || serve(client, status, body, &seen));
        }
    });
    (format!("http://{address}"), requests)
}

fn serve(client: TcpStream, status: &str, body: Body, seen: &Requests) {
    let mut reader = BufReader::new(client.try_clone().expect("the same socket"));
    let mut client = client;
    loop {
        let (mut head, mut line) = (String::new(), String::new());
        while reader.read_line(&mut line).is_ok_and(|read| read > 0) && line.trim() != "" {
            head.push_str(&line.to_lowercase());
            line.clear();
        }
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"));
        let Some(length) = length.and_then(|length| length.trim().parse().ok()) else {
            return;
        };
        let mut sent = vec![0; length];
        if reader.read_exact(&mut sent).is_err() {
            return;
        }
        let sent = String::from_utf8_lossy(&sent).into_owned();
        let answer = body(&sent);
        seen.lock().expect("no panic").push(head + &sent);
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n",
            answer.len()
        );
        if client.write_all((head + &answer).as_bytes()).is_err() {
            return;
        }
    }
}

/// Answers each query like a Prometheus.
fn answers(query: &str) -> String {
    let of_time = query.contains("3600s");
    if of_time { LINE } else { VALUE }.to_owned()
}

fn fleet(url: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(support::pipetop());
    command
        .args(["fleet", "--prometheus", url])
        .args(arguments)
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .envs(variables.iter().copied())
        .stdin(Stdio::null());
    command.to_end()
}

#[test]
fn runs_are_printed_as_a_table_and_as_json() {
    let (url, _) = server("200 OK", answers);
    let output = fleet(&url, &["--once"], &[]);
    let table = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(
        table.contains("slurm-7") && table.contains("50 %"),
        "{table}"
    );
    assert!(table.contains("note: a store is away"), "{table}");
    let output = fleet(&url, &["--json", "--run", "slurm-7"], &[]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        json.pointer("/runs/0/all_ranks/0/instance"),
        Some(&"gpu-01:9977".into())
    );
    assert_eq!(json.pointer("/runs/0/cause"), Some(&"disk".into()));
}

#[test]
fn credentials_come_from_the_environment_or_a_file() {
    let (url, requests) = server("200 OK", answers);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    std::fs::write(&file, "fromfile\n").expect("a file");
    let file = file.to_str().expect("UTF-8").to_owned();
    for (arguments, variables, header) in [
        (
            vec![],
            vec![("PIPETOP_PROMETHEUS_TOKEN", "abc")],
            "bearer abc",
        ),
        // base64 of `u:p`, in lower case like the rest of the head.
        (
            vec![],
            vec![("PIPETOP_PROMETHEUS_BASIC", "u:p")],
            "basic dtpw",
        ),
        (vec!["--token-file", &file], vec![], "bearer fromfile"),
    ] {
        let output = fleet(&url, &arguments, &variables);
        assert_eq!(output.status.code(), Some(0));
        let seen = std::mem::take(&mut *requests.lock().expect("no panic"));
        let header = format!("authorization: {header}");
        assert!(
            !seen.is_empty() && seen.iter().all(|request| request.contains(&header)),
            "{seen:#?}"
        );
    }
}

#[test]
fn credentials_without_a_colon_are_refused_and_not_repeated() {
    let output = fleet(
        "http://127.0.0.1:9",
        &[],
        &[("PIPETOP_PROMETHEUS_BASIC", "geheim")],
    );
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        said,
        "error: PIPETOP_PROMETHEUS_BASIC is not USER:PASSWORD\n\
         hint: put a colon between the user's name and the password\n"
    );
}

#[test]
fn one_way_to_log_in_is_used() {
    let basic = ("PIPETOP_PROMETHEUS_BASIC", "u:geheim");
    let token = ("PIPETOP_PROMETHEUS_TOKEN", "abc");
    for (arguments, variables, other) in [
        (
            &["--token-file", "no/file"][..],
            &[basic][..],
            "--token-file",
        ),
        (&[], &[basic, token], "PIPETOP_PROMETHEUS_TOKEN"),
    ] {
        let output = fleet("http://127.0.0.1:9", arguments, variables);
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stderr);
        let (error, _) = refused(&said);
        let expected = format!("{other} and PIPETOP_PROMETHEUS_BASIC are two ways to log in");
        assert_eq!(error, expected);
        assert!(!said.contains("geheim"), "{said}");
    }
}

#[test]
fn a_run_that_is_not_known_may_be_the_first() {
    const NONE: &str = r#"{"status":"success","data":{"result":[]}}"#;
    let others: Body = |query| {
        if query.contains("run%3D") {
            NONE.to_owned()
        } else {
            answers(query)
        }
    };
    let nothing: Body = |_| NONE.to_owned();
    for (body, hint) in [
        (others, "omit --run to see them all"),
        (
            nothing,
            "this Prometheus has no pipetop metrics: let it scrape `pipetop serve` on each node",
        ),
    ] {
        let (url, _) = server("200 OK", body);
        let output = fleet(&url, &["--once", "--run", "x"], &[]);
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said, format!("error: no run `x` is known\nhint: {hint}\n"));
    }
}

#[test]
fn other_servers_are_one_line_and_a_hint() {
    let cases: [(&str, Body, &str); 7] = [
        (
            "200 OK",
            |_| "<html>hello</html>".to_owned(),
            "does not answer like a Prometheus server",
        ),
        (
            "502 Bad Gateway",
            |_| "<html>".to_owned(),
            "Prometheus server: 502 Bad Gateway",
        ),
        (
            "401 Unauthorized",
            |_| String::new(),
            "refuses the request: 401",
        ),
        (
            "301 Moved Permanently\r\nLocation: https://there/prom/api/v1/query",
            |_| String::new(),
            "redirects to another address\nhint: use --prometheus https://there/prom\n",
        ),
        (
            "307 Temporary Redirect\r\nLocation: /login",
            |_| String::new(),
            "redirects to another address\nhint: use the address of the Prometheus behind it",
        ),
        (
            "400 Bad Request",
            |_| r#"{"status":"error","errorType":"bad_data","error":"no \u001b[2J"}"#.to_owned(),
            "refuses a query: no",
        ),
        (
            "200 OK",
            |_| r#"{"status":"success","data":{"result":[]}}"#.to_owned(),
            "",
        ),
    ];
    for (status, body, message) in cases {
        let (url, _) = server(status, body);
        let output = fleet(&url, &[], &[]);
        if message.is_empty() {
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(said.starts_with("no runs: "), "{said}");
            continue;
        }
        assert_eq!(output.status.code(), Some(1));
        let errors = String::from_utf8_lossy(&output.stderr);
        let (error, hint) = refused(&errors);
        let said = format!("{error}\nhint: {hint}\n");
        assert!(
            said.contains(message) && !said.contains('\u{1b}'),
            "{errors}"
        );
    }
    for (url, code) in [
        ("http://127.0.0.1:1", 1),
        ("ftp://here", 2),
        ("http://u:p@here", 2),
        ("http://", 2),
    ] {
        let output = fleet(url, &[], &[]);
        assert_eq!(output.status.code(), Some(code), "{url}");
        refused(&String::from_utf8_lossy(&output.stderr));
    }
}

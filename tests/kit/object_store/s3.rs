//! One request over one connection: read, checked, done, answered.

use std::collections::BTreeMap;
use std::sync::Mutex;

use anyhow::Context as _;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};

use super::signature::{Signed, check};
use super::{Asked, BUCKET, Fault, Object, State, whole};

struct Request {
    method: String,
    /// As it arrived.
    path: String,
    query: Vec<(String, String)>,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    /// What `Content-Length` says to a HEAD, which has no body.
    length: Option<usize>,
}

impl Answer {
    fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new(), length: None }
    }

    fn error(status: u16, code: &str) -> Self {
        let body = format!(
            "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>said by the test's store</Message></Error>"
        );
        Self { body: body.into_bytes(), ..Self::new(status) }
    }
}

pub async fn serve(line: impl AsyncRead + AsyncWrite + Unpin, state: &Mutex<State>) -> anyhow::Result<()> {
    let mut line = BufReader::new(line);
    let request = read(&mut line).await?;
    let (answer, method) = (answered(&request, &mut whole(state)), request.method);
    let Some(answer) = answer else { return Ok(()) };
    let length = answer.length.unwrap_or(answer.body.len());
    let mut head = format!(
        "HTTP/1.1 {} said\r\nServer: waybill-test\r\nContent-Length: {length}\r\nConnection: close\r\n",
        answer.status
    );
    for (name, value) in &answer.headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    line.write_all(head.as_bytes()).await?;
    if method != "HEAD" {
        line.write_all(&answer.body).await?;
    }
    Ok(line.shutdown().await?)
}

async fn read(line: &mut BufReader<impl AsyncRead + Unpin>) -> anyhow::Result<Request> {
    let mut first = String::new();
    line.read_line(&mut first).await?;
    let mut words = first.split_whitespace();
    let (method, target) = (words.next().context("no method")?.to_owned(), words.next().context("no target")?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decoded(&name.replace('+', " "))?, decoded(&value.replace('+', " "))?))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let path = path.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        line.read_line(&mut header).await?;
        let header = header.trim_end();
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(':').context("a header without a colon")?;
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(Ok(0), |length| length.parse())?;
    let mut body = vec![0; length];
    line.read_exact(&mut body).await?;
    Ok(Request { method, path, query, headers, body })
}

fn decoded(text: &str) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2).context("a `%` without its digits")?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits)?, 16)?);
        rest = after;
    }
    Ok(String::from_utf8(bytes)?)
}

/// Does what is asked, and says so: both unless a fault has it otherwise.
fn answered(request: &Request, state: &mut State) -> Option<Answer> {
    let bucket = format!("/{BUCKET}");
    let key = request.path.strip_prefix(&bucket).map(|key| decoded(key.trim_start_matches('/')).unwrap_or_default());
    let name = key.clone().unwrap_or_default();
    let fault = state.fault(&request.method, &name);
    let done = match fault {
        Some(Fault::CutBefore) => None,
        Some(Fault::Answer(status)) => Some(Answer::error(status, "Faulty")),
        Some(Fault::CutAfter) => {
            done(request, key, state);
            None
        }
        Some(Fault::AnswerAfter(status)) => {
            done(request, key, state);
            Some(Answer::error(status, "Faulty"))
        }
        None => Some(done(request, key, state)),
    };
    state.log.push(Asked {
        method: request.method.clone(),
        key: name,
        conditional: request.headers.get("if-none-match").is_some_and(|condition| condition == "*"),
        status: done.as_ref().map(|answer| answer.status),
    });
    done
}

fn done(request: &Request, key: Option<String>, state: &mut State) -> Answer {
    let signed = Signed {
        method: &request.method,
        path: &request.path,
        query: &request.query,
        headers: &request.headers,
        body: &request.body,
    };
    if let Err(code) = check(&signed) {
        return Answer::error(if code == "XAmzContentSHA256Mismatch" { 400 } else { 403 }, code);
    }
    let Some(key) = key.filter(|_| state.manners.has_bucket) else { return Answer::error(404, "NoSuchBucket") };
    match (request.method.as_str(), key.is_empty()) {
        ("GET", true) if state.manners.may_list => list(request, state),
        ("GET", true) => Answer::error(403, "AccessDenied"),
        ("GET" | "HEAD", false) => match state.objects.get(&key) {
            Some(object) => shown(request, object),
            // As Amazon's: who may not list is not told what is absent.
            None if !state.manners.may_list => Answer::error(403, "AccessDenied"),
            None => Answer::error(404, "NoSuchKey"),
        },
        ("PUT", false) => {
            let conditional = request.headers.contains_key("if-none-match") && state.manners.keeps_condition;
            if conditional && state.objects.contains_key(&key) {
                return Answer::error(412, "PreconditionFailed");
            }
            state.write(&key, request.body.clone());
            Answer { headers: vec![("ETag", format!("\"{}\"", state.writes))], ..Answer::new(200) }
        }
        ("DELETE", false) => {
            state.objects.remove(&key);
            Answer::new(204)
        }
        _ => Answer::error(405, "MethodNotAllowed"),
    }
}

fn shown(request: &Request, object: &Object) -> Answer {
    let total = object.content.len();
    let headers = vec![
        ("ETag", format!("\"{}\"", object.written)),
        ("Last-Modified", format!("Mon, 30 Nov 2026 12:00:{:02} GMT", object.written % 60)),
    ];
    if request.method == "HEAD" {
        return Answer { headers, length: Some(total), ..Answer::new(200) };
    }
    let range = request.headers.get("range").and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
    let Some((from, to)) = range else { return Answer { headers, body: object.content.clone(), ..Answer::new(200) } };
    let (Ok(from), Ok(to)) = (from.parse::<usize>(), to.parse::<usize>()) else {
        return Answer::error(400, "InvalidArgument");
    };
    if from >= total {
        return Answer::error(416, "InvalidRange");
    }
    let to = to.min(total - 1);
    let mut headers = headers;
    headers.push(("Content-Range", format!("bytes {from}-{to}/{total}")));
    Answer { headers, body: object.content.get(from..=to).unwrap_or_default().to_vec(), ..Answer::new(206) }
}

/// Pages of two, so that no test meets a listing of one page only.
fn list(request: &Request, state: &State) -> Answer {
    const PAGE: usize = 2;
    let of = |name: &str| request.query.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str());
    let (prefix, delimiter, after) = (of("prefix"), of("delimiter"), of("continuation-token"));
    // Each object or folder once, in order.
    let mut found: BTreeMap<String, Option<&Object>> = BTreeMap::new();
    for (key, object) in &state.objects {
        let Some(rest) = key.strip_prefix(prefix) else { continue };
        match rest.split_once(delimiter).filter(|_| !delimiter.is_empty()) {
            Some((folder, _)) => found.insert(format!("{prefix}{folder}{delimiter}"), None),
            None => found.insert(key.clone(), Some(object)),
        };
    }
    let mut rest = found.into_iter().filter(|(name, _)| name.as_str() > after).peekable();
    let (mut text, mut last) = ("<?xml version=\"1.0\"?><ListBucketResult>".to_owned(), String::new());
    for (name, object) in rest.by_ref().take(PAGE) {
        last.clone_from(&name);
        let name = name.replace('&', "&amp;").replace('<', "&lt;");
        text += &match object {
            None => format!("<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>"),
            Some(Object { content, written }) => format!(
                "<Contents><Key>{name}</Key><Size>{}</Size><ETag>\"{written}\"</ETag><LastModified>2026-11-30T12:00:{:02}.000Z</LastModified></Contents>",
                content.len(),
                written % 60
            ),
        };
    }
    if rest.peek().is_some() {
        text += &format!("<IsTruncated>true</IsTruncated><NextContinuationToken>{last}</NextContinuationToken>");
    }
    Answer { body: (text + "</ListBucketResult>").into_bytes(), ..Answer::new(200) }
}

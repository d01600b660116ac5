//! One signed request over a connection of its own: what the client library asks goes out here, and only here.
//!
//! A connection is opened for each request and never used again. That costs a handshake, and buys that the two questions
//! which matter have plain answers: before the connection stands, nothing was sent; from then on, whatever is not an answer
//! may have taken effect. A line that was kept and went stale would blur both.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt as _;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_LENGTH, HOST, HeaderValue, SERVER};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use object_store::ClientOptions;
use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::ServerName;

use super::address::StoreAddress;
use super::answers::{Answered, Failure, plain};
use super::trust::Trust;
use crate::job::facts::Sha256;
use crate::remote::endpoint::ObjectsEndpoint;
use crate::remote::error::RemoteError;
use crate::remote::session::SessionLimits;

/// What an answer that is taken whole may have at most: a page of a listing has 1000 names.
const MOST_ANSWERED: usize = 8 * 1024 * 1024;

type Blocks = BoxStream<'static, Result<Bytes, RemoteError>>;
type Body = UnsyncBoxBody<Bytes, RemoteError>;

/// What a request carries, handed past the client library, which would hold it in memory whole. Its length and digest are
/// known before, and signed.
#[derive(Clone)]
pub(super) struct Content {
    bytes: u64,
    sha256: Sha256,
    blocks: Arc<Mutex<Option<Blocks>>>,
}

impl Content {
    pub(super) fn new(bytes: u64, sha256: Sha256, blocks: Blocks) -> Self {
        Self { bytes, sha256, blocks: Arc::new(Mutex::new(Some(blocks))) }
    }

    /// The content, once.
    fn take(&self) -> Option<Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The way to one store.
#[derive(Clone)]
pub(super) struct Wire(Arc<Inner>);

struct Inner {
    address: StoreAddress,
    region: String,
    credential: AwsCredential,
    /// `None`: without TLS, which is for this machine only.
    tls: Option<Trust>,
    limits: SessionLimits,
    /// What the store calls itself.
    software: OnceLock<String>,
}

/// Without the credential.
impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").field("address", &self.0.address).finish_non_exhaustive()
    }
}

impl Wire {
    pub(super) fn new(
        endpoint: &ObjectsEndpoint,
        credential: AwsCredential,
        limits: SessionLimits,
    ) -> Result<Self, String> {
        let ObjectsEndpoint { address, region, ca_file, .. } = endpoint;
        let tls = if address.secure { Some(Trust::load(ca_file.as_deref())?) } else { None };
        let (address, region) = (address.clone(), region.clone());
        Ok(Self(Arc::new(Inner { address, region, credential, tls, limits, software: OnceLock::new() })))
    }

    /// The `Server` of the first answer.
    pub(super) fn software(&self) -> Option<&str> {
        self.0.software.get().map(String::as_str)
    }
}

impl HttpConnector for Wire {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

impl HttpService for Wire {
    fn call<'wire, 'called>(&'wire self, request: HttpRequest) -> BoxFuture<'called, Result<HttpResponse, HttpError>>
    where
        'wire: 'called,
        Self: 'called,
    {
        // The kind is for the library's retries, which are off.
        Box::pin(async {
            self.0.exchange(request).await.map_err(|failure| HttpError::new(HttpErrorKind::Unknown, failure))
        })
    }
}

impl Inner {
    async fn exchange(&self, mut request: HttpRequest) -> Result<HttpResponse, Failure> {
        let content = request.extensions_mut().remove::<Content>();
        let digest = content.as_ref().map(|content| content.sha256.0);
        if let Some(uri) = with_plain_spaces(request.uri()) {
            *request.uri_mut() = uri;
        }
        AwsAuthorizer::new(&self.credential, "s3", &self.region)
            .try_authorize(&mut request, digest.as_ref().map(<[u8; 32]>::as_slice))
            .map_err(|error| Failure::NotSent(format!("the request could not be signed: {error}")))?;
        // The content of one object is taken as it comes, and bounded by whoever takes it.
        let whole = request.uri().query().is_some();
        let moved = Arc::new(AtomicU64::new(0));
        let request = self.as_sent(request, content.as_ref(), &moved)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(self.connect().await?))
            .await
            .map_err(|error| Failure::NotSent(error.to_string()))?;
        // Carries the request and the answer, and ends with them.
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to an object store ended");
            }
        });
        let response = while_it_moves(sender.send_request(request), &moved, self.limits.stall).await?;
        self.answered(response, whole).await
    }

    /// The request as HTTP/1.1 has it on the wire.
    fn as_sent(
        &self,
        request: HttpRequest,
        content: Option<&Content>,
        moved: &Arc<AtomicU64>,
    ) -> Result<Request<Body>, Failure> {
        let unusable = |what: &str| Failure::NotSent(format!("the request has no usable {what}"));
        let (mut parts, _) = request.into_parts();
        let path = parts.uri.path_and_query().cloned().ok_or_else(|| unusable("path"))?;
        parts.uri = Uri::from(path);
        let host = HeaderValue::try_from(self.address.authority()).map_err(|_| unusable("host"))?;
        parts.headers.insert(HOST, host);
        let body = match content {
            None => Empty::new().map_err(|never| match never {}).boxed_unsync(),
            Some(content) => {
                // Were one ever repeated, the first may have taken effect.
                let blocks =
                    content.take().ok_or_else(|| Failure::Cut("it was to be sent a second time".to_owned()))?;
                parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(content.bytes));
                let moved = Arc::clone(moved);
                let frames = blocks.map_ok(move |block| {
                    moved.fetch_add(block.len() as u64, Ordering::Relaxed);
                    Frame::data(block)
                });
                StreamBody::new(frames).boxed_unsync()
            }
        };
        Ok(Request::from_parts(parts, body))
    }

    async fn connect(&self) -> Result<Box<dyn Line>, Failure> {
        let within = self.limits.connect;
        let late = |what: &str| Failure::NotSent(format!("{what} did not end within {} s", within.as_secs_f32()));
        let host = self.address.bare_host();
        let stream = match tokio::time::timeout(within, TcpStream::connect((host, self.address.port))).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(Failure::NotSent(error.to_string())),
            Err(_) => return Err(late("connecting")),
        };
        // Without it the last piece of a request waits for an acknowledgment; with an error it only waits.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection keeps waiting to fill packets");
        }
        let Some(trust) = &self.tls else { return Ok(Box::new(stream)) };
        let name = ServerName::try_from(host.to_owned()).map_err(|error| Failure::NotSent(error.to_string()))?;
        match tokio::time::timeout(within, trust.connector().connect(name, stream)).await {
            Ok(Ok(stream)) => Ok(Box::new(stream)),
            Ok(Err(error)) => Err(trust
                .needs(&error, host)
                .map_or_else(|| Failure::NotSent(format!("TLS could not be set up: {error}")), Failure::Unfit)),
            Err(_) => Err(late("setting up TLS")),
        }
    }

    async fn answered(&self, response: Response<Incoming>, whole: bool) -> Result<HttpResponse, Failure> {
        if let Some(software) = response.headers().get(SERVER).and_then(|value| value.to_str().ok()) {
            self.software.get_or_init(|| plain(software));
        }
        let status = response.status();
        if !status.is_success() {
            // The status is an answer, whether or not all of its words arrive.
            let words = beginning(response.into_body(), self.limits.request).await;
            return Err(Failure::Answered(Answered::read(status.as_u16(), &words)));
        }
        Ok(response.map(|body| {
            let lost = |why| HttpError::new(HttpErrorKind::Unknown, Failure::Cut(why));
            if whole {
                let bounded = Limited::new(body, MOST_ANSWERED);
                return HttpResponseBody::new(bounded.map_err(move |error| lost(error.to_string())));
            }
            HttpResponseBody::new(body.map_err(move |error| lost(in_words(&error))))
        }))
    }
}

/// Each space of a query as `%20`. Some stores check the signature over the query as it arrived, where the library's `+` is
/// another letter; a `+` that was meant is `%2B`.
fn with_plain_spaces(uri: &Uri) -> Option<Uri> {
    uri.query().filter(|query| query.contains('+'))?;
    uri.to_string()
        .split_once('?')
        .and_then(|(before, query)| format!("{before}?{}", query.replace('+', "%20")).parse().ok())
}

/// Waits for the answer as long as the request's bytes move, and then for as long again.
async fn while_it_moves(
    answer: impl Future<Output = hyper::Result<Response<Incoming>>>,
    moved: &AtomicU64,
    stall: Duration,
) -> Result<Response<Incoming>, Failure> {
    let mut answer = std::pin::pin!(answer);
    let mut before = 0;
    loop {
        if let Ok(answer) = tokio::time::timeout(stall, &mut answer).await {
            return answer.map_err(|error| Failure::Cut(in_words(&error)));
        }
        let now = moved.load(Ordering::Relaxed);
        if now == before {
            return Err(Failure::Cut(format!("nothing moved and no answer came for {} s", stall.as_secs_f32())));
        }
        before = now;
    }
}

/// The first bytes of a body, as far as they arrive in time.
async fn beginning(mut body: Incoming, within: Duration) -> Vec<u8> {
    const MOST: usize = 16 * 1024;
    let mut words = Vec::new();
    let reading = async {
        while words.len() < MOST {
            let Some(Ok(frame)) = body.frame().await else { break };
            words.extend(frame.into_data().unwrap_or_default());
        }
    };
    if tokio::time::timeout(within, reading).await.is_err() {
        tracing::debug!("the words of a refusal did not arrive in time");
    }
    words
}

fn in_words(error: &hyper::Error) -> String {
    let cause = std::error::Error::source(error).map_or_else(String::new, |cause| format!(": {cause}"));
    format!("{error}{cause}")
}

/// A connection's bytes.
trait Line: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Line for T {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_space_of_a_query_is_spelled_in_one_way_and_the_rest_is_left() {
        let spelled = |uri: &'static str| with_plain_spaces(&Uri::from_static(uri)).map(|uri| uri.to_string());
        let twice = spelled("https://store.example/b/a+b?prefix=in%2Fa+b%2Bc+d&max-keys=1");
        assert_eq!(twice.as_deref(), Some("https://store.example/b/a+b?prefix=in%2Fa%20b%2Bc%20d&max-keys=1"));
        assert_eq!(spelled("https://store.example/b/a+b?prefix=in%2F"), None);
        assert_eq!(spelled("https://store.example/b/a+b"), None);
    }
}

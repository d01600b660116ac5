//! Which authorities vouch for a store, and what is said of one that none of them vouches for.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::{self, AlertDescription, CertificateError, ClientConfig, RootCertStore};

use super::answers::plain;

/// Whom the connections to one store believe.
#[derive(Clone)]
pub(super) struct Trust {
    connector: TlsConnector,
    /// The destination's own authorities, in place of the machine's.
    ca_file: Option<PathBuf>,
}

impl Trust {
    /// Reads the authorities: those of the file alone where there is one, else those that this machine trusts. An error says
    /// what to do.
    pub(super) fn load(ca_file: Option<&Path>) -> Result<Self, String> {
        let roots = match ca_file {
            Some(path) => of_file(path)
                .map_err(|why| format!("`ca_file` in destinations.toml names {}, and {why}", path.display()))?,
            None => of_this_machine()?,
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { connector: TlsConnector::from(Arc::new(config)), ca_file: ca_file.map(Path::to_owned) })
    }

    pub(super) fn connector(&self) -> &TlsConnector {
        &self.connector
    }

    /// What a person must do about a handshake that failed; `None` where it may pass by itself.
    pub(super) fn needs(&self, error: &std::io::Error, host: &str) -> Option<String> {
        use AlertDescription::{HandshakeFailure, InsufficientSecurity, ProtocolVersion, UnrecognisedName};
        match error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>())? {
            rustls::Error::InvalidCertificate(error) => Some(self.distrust(error, host)),
            rustls::Error::InvalidMessage(_) => {
                Some("what answers there does not speak TLS; correct `store` in destinations.toml".to_owned())
            }
            error @ (rustls::Error::PeerIncompatible(_)
            | rustls::Error::AlertReceived(
                HandshakeFailure | InsufficientSecurity | ProtocolVersion | UnrecognisedName,
            )) => Some(format!(
                "it and this host agree on no TLS ({error}); it must speak TLS 1.2 or 1.3 under the name {host}: have it mended, or correct `store` in destinations.toml"
            )),
            _ => None,
        }
    }

    fn distrust(&self, error: &CertificateError, host: &str) -> String {
        match (error, &self.ca_file) {
            (CertificateError::UnknownIssuer, Some(path)) => format!(
                "its certificate is signed by no authority in {} (`ca_file`); have the one that signs it confirmed, and put its certificate there",
                path.display()
            ),
            (CertificateError::UnknownIssuer, None) => "its certificate is signed by no authority that this machine trusts; have the one that signs it confirmed, and name its certificate with `ca_file` in destinations.toml".to_owned(),
            (CertificateError::ExpiredContext { not_after, .. }, _) => format!(
                "its certificate ended at {}; have it renewed, or set this machine's clock",
                written(*not_after)
            ),
            (CertificateError::NotValidYetContext { not_before, .. }, _) => format!(
                "its certificate begins at {}; set this machine's clock, or have another made",
                written(*not_before)
            ),
            (CertificateError::NotValidForNameContext { presented, .. }, _) => format!(
                "its certificate is for {}, not for {host}; name the store in `store` of destinations.toml as its certificate does, or have one made for that name",
                if presented.is_empty() { "no name".to_owned() } else { plain(&presented.join(", ")) }
            ),
            (error, _) => format!("its certificate cannot be trusted ({error}); have another made"),
        }
    }
}

/// Whoever may write to the file decides whom the host believes.
fn of_file(path: &Path) -> Result<RootCertStore, String> {
    let text = std::fs::read(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "no such file is there; put the authority's certificate there".to_owned(),
        _ => format!("it cannot be read ({error}); give the service's user access"),
    })?;
    let metadata = std::fs::metadata(path).map_err(|error| format!("it cannot be examined ({error})"))?;
    if metadata.permissions().mode() & 0o002 != 0 {
        return Err("everybody may write to it; run `chmod o-w` on it".to_owned());
    }
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        certificate
            .map_err(|error| error.to_string())
            .and_then(|one| roots.add(one).map_err(|error| error.to_string()))
            .map_err(|error| {
                format!(
                    "not every certificate in it can be read ({}); put the authority's there, as PEM text",
                    plain(&error)
                )
            })?;
    }
    if roots.is_empty() {
        return Err("it holds no certificate; put the authority's there, as PEM text".to_owned());
    }
    Ok(roots)
}

fn of_this_machine() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err("this machine trusts no certificate authority; install `ca-certificates`, or name the store's with `ca_file` in destinations.toml".to_owned());
    }
    Ok(roots)
}

fn written(at: UnixTime) -> String {
    let seconds = i64::try_from(at.as_secs()).ok();
    let time = seconds.and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    time.and_then(|time| time.format(&Rfc3339).ok()).unwrap_or_else(|| format!("second {} of Unix time", at.as_secs()))
}

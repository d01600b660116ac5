//! Certificates of a private authority, as a house signs them for a store of its own.

use std::ops::Range;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use time::OffsetDateTime;
use time::macros::datetime;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::rustls::{ALL_VERSIONS, ServerConfig, SupportedProtocolVersion};

/// Longer than any test is run.
const LONG: Range<OffsetDateTime> = datetime!(2020-01-01 0:00 UTC)..datetime!(2120-01-01 0:00 UTC);

/// Who signs.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A server's certificate and its key.
pub struct Identity {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

impl Authority {
    pub fn new(name: &str) -> anyhow::Result<Self> {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        Ok(Self(CertifiedIssuer::self_signed(parameters, KeyPair::generate()?)?))
    }

    /// Its own certificate.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Signs a certificate for a server of these names or addresses.
    pub fn signed(&self, names: &[&str]) -> anyhow::Result<Identity> {
        self.signed_for(names, LONG)
    }

    pub fn signed_for(&self, names: &[&str], valid: Range<OffsetDateTime>) -> anyhow::Result<Identity> {
        let key = KeyPair::generate()?;
        let certificate = parameters(names, valid)?.signed_by(&key, &self.0)?;
        Ok(Identity { certificate, key })
    }
}

impl Identity {
    /// Signed by nobody else.
    pub fn self_signed(names: &[&str]) -> anyhow::Result<Self> {
        let key = KeyPair::generate()?;
        let certificate = parameters(names, LONG)?.self_signed(&key)?;
        Ok(Self { certificate, key })
    }

    pub fn pem(&self) -> String {
        self.certificate.pem()
    }

    pub fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// For a server that shows it.
    pub fn serving(&self) -> anyhow::Result<Arc<ServerConfig>> {
        self.serving_only(ALL_VERSIONS)
    }

    /// For one that speaks these versions of TLS only.
    pub fn serving_only(&self, versions: &[&'static SupportedProtocolVersion]) -> anyhow::Result<Arc<ServerConfig>> {
        let key = PrivatePkcs8KeyDer::from(self.key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)?
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.der().clone()], key.into())?;
        Ok(Arc::new(config))
    }
}

fn parameters(names: &[&str], valid: Range<OffsetDateTime>) -> anyhow::Result<CertificateParams> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut parameters = CertificateParams::new(names)?;
    parameters.distinguished_name.push(DnType::CommonName, "a store");
    (parameters.not_before, parameters.not_after) = (valid.start, valid.end);
    Ok(parameters)
}

//! AWS Signature Version 4, as a store checks it: from what arrived, with its own HMAC, and from nothing else.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use super::{ACCESS_KEY, REGION, SECRET_KEY};

/// What of a request is signed.
pub struct Signed<'a> {
    pub method: &'a str,
    /// As it arrived, percent-encoded.
    pub path: &'a str,
    /// Decoded.
    pub query: &'a [(String, String)],
    pub headers: &'a BTreeMap<String, String>,
    pub body: &'a [u8],
}

/// The error's name where the request is not signed as it must be.
pub fn check(request: &Signed<'_>) -> Result<(), &'static str> {
    let header = |name: &str| request.headers.get(name).map(String::as_str).ok_or("AccessDenied");
    let digest = hex(&Sha256::digest(request.body));
    if header("x-amz-content-sha256")? != digest {
        return Err("XAmzContentSHA256Mismatch");
    }
    let fields = header("authorization")?.strip_prefix("AWS4-HMAC-SHA256 ").ok_or("AccessDenied")?;
    let field = |name: &str| {
        let found = fields.split(", ").find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
        found.ok_or("AuthorizationHeaderMalformed")
    };
    let (access_key, scope) = field("Credential")?.split_once('/').ok_or("AuthorizationHeaderMalformed")?;
    if access_key != ACCESS_KEY {
        return Err("InvalidAccessKeyId");
    }
    let date = scope.split('/').next().unwrap_or_default();
    if scope != format!("{date}/{REGION}/s3/aws4_request") {
        return Err("AuthorizationHeaderMalformed");
    }
    let names = field("SignedHeaders")?;
    // What changes the meaning of a request must be signed.
    let must =
        |name: &&String| name.starts_with("x-amz-") || matches!(name.as_str(), "host" | "if-none-match" | "range");
    if request.headers.keys().filter(must).any(|name| !names.split(';').any(|signed| signed == name)) {
        return Err("HeadersNotSigned");
    }
    let mut canonical = format!("{}\n{}\n{}\n", request.method, request.path, query(request.query));
    for name in names.split(';') {
        canonical += &format!("{name}:{}\n", header(name)?.trim());
    }
    canonical += &format!("\n{names}\n{digest}");
    let to_sign =
        format!("AWS4-HMAC-SHA256\n{}\n{scope}\n{}", header("x-amz-date")?, hex(&Sha256::digest(canonical.as_bytes())));
    let mut key = hmac(format!("AWS4{SECRET_KEY}").as_bytes(), date.as_bytes());
    for part in [REGION, "s3", "aws4_request"] {
        key = hmac(&key, part.as_bytes());
    }
    if field("Signature")? == hex(&hmac(&key, to_sign.as_bytes())) { Ok(()) } else { Err("SignatureDoesNotMatch") }
}

fn query(pairs: &[(String, String)]) -> String {
    let mut encoded: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{}={}", strict(name), strict(value))).collect();
    encoded.sort();
    encoded.join("&")
}

fn strict(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    text.bytes().map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    const BLOCK: usize = 64;
    let mut padded = [0_u8; BLOCK];
    let short: Vec<u8> = if key.len() > BLOCK { Sha256::digest(key).to_vec() } else { key.to_vec() };
    for (place, byte) in padded.iter_mut().zip(short) {
        *place = byte;
    }
    let inner = Sha256::new().chain_update(padded.map(|byte| byte ^ 0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(padded.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().into()
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

//! Where an object store is: a scheme, a host and a port, and nothing after them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The address of a store. Equal addresses are written the same way, whatever was typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreAddress {
    pub secure: bool,
    /// Lower-case; an IPv6 address stands in brackets.
    pub host: String,
    pub port: u16,
}

const HTTPS: u16 = 443;
const HTTP: u16 = 80;

impl StoreAddress {
    /// Amazon's own store in a region.
    pub fn of_region(region: &str) -> Self {
        Self { secure: true, host: format!("s3.{region}.amazonaws.com"), port: HTTPS }
    }

    /// Reads `https://host:port`. Says what is wrong, without the text itself: someone may have put a secret there.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const SHAPE: &str =
            "must be `https://` and a host, with a port if it is another than 443, and nothing after it";
        let (secure, rest) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return Err(SHAPE),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.rsplit_once(':') {
            // The last colon of a bare IPv6 address stands within its brackets.
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (rest, None),
        };
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_host = match inner {
            Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')),
        };
        if !is_host {
            return Err(SHAPE);
        }
        let port = match port.map(str::parse) {
            None => {
                if secure {
                    HTTPS
                } else {
                    HTTP
                }
            }
            Some(Ok(port)) if port != 0 => port,
            Some(_) => return Err(SHAPE),
        };
        let address = Self { secure, host: host.to_ascii_lowercase(), port };
        if !address.secure && !address.is_this_machine() {
            return Err(
                "must begin with `https://`; without TLS anybody on the way reads what is delivered, so `http://` is for a store on this machine only",
            );
        }
        Ok(address)
    }

    /// The host as a socket's address needs it.
    pub(super) fn bare_host(&self) -> &str {
        self.host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&self.host)
    }

    /// The value of `Host`, which the signature covers.
    pub(super) fn authority(&self) -> String {
        if self.port == if self.secure { HTTPS } else { HTTP } {
            self.host.clone()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    fn is_this_machine(&self) -> bool {
        self.host == "localhost"
            || self.bare_host().parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.secure { "https" } else { "http" }, self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_store_is_written_in_one_way() {
        for (text, address) in [
            ("https://Store.Example", "https://store.example"),
            ("https://store.example:443/", "https://store.example"),
            ("https://store.example:9000", "https://store.example:9000"),
            ("https://[2001:db8::1]", "https://[2001:db8::1]"),
            ("http://127.0.0.1:9000", "http://127.0.0.1:9000"),
            ("http://[::1]:80", "http://[::1]"),
        ] {
            assert_eq!(StoreAddress::parse(text).map(|address| address.to_string()), Ok(address.to_owned()));
        }
        assert_eq!(StoreAddress::of_region("eu-west-1").to_string(), "https://s3.eu-west-1.amazonaws.com");
        for text in [
            "store.example",
            "https://",
            "https://store.example/bucket",
            "https://user:secret@store.example",
            "https://store.example:0",
            "https://store.example:x",
            "https://store.example?x",
            "http://store.example",
            "http://10.0.0.1:9000",
            "http://[2001:db8::1]:9000",
        ] {
            assert!(StoreAddress::parse(text).is_err(), "{text}");
        }
    }
}

//! The partners of the demo: their servers, their folders, and their bundles in the partners directory.
//!
//! The bundles are those of `plugins/bundles`. Only what cannot be known before a run is put in: addresses, host keys, the
//! account and its key, and where the customer database is.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use toml::{Table, Value};
use uuid::Uuid;

use super::line::Line;
use crate::embedded::openssh::{OpenSsh, Settings};

const BUNDLES: [Bundle; 2] = [
    Bundle {
        name: "northwind",
        manifest: include_str!("../../../../plugins/bundles/northwind/partner.toml"),
        destinations: include_str!("../../../../plugins/bundles/northwind/destinations.example.toml"),
    },
    Bundle {
        name: "meridian",
        manifest: include_str!("../../../../plugins/bundles/meridian/partner.toml"),
        destinations: include_str!("../../../../plugins/bundles/meridian/destinations.example.toml"),
    },
];

struct Bundle {
    name: &'static str,
    manifest: &'static str,
    destinations: &'static str,
}

/// One destination, as the demo speaks of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub id: Uuid,
    pub name: String,
    pub tenant: Uuid,
    pub partner: &'static str,
    pub site: Site,
    /// The destination's directory at the partner.
    pub directory: String,
}

/// One of the partners' servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Site {
    Northwind,
    Meridian,
    /// Meridian's second site, which is down at first.
    West,
    /// The partner of the second act.
    Kestrel,
}

impl Site {
    pub const ALL: [Self; 4] = [Self::Northwind, Self::Meridian, Self::West, Self::Kestrel];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Northwind => "northwind",
            Self::Meridian => "meridian",
            Self::West => "meridian-west",
            Self::Kestrel => "kestrel",
        }
    }

    /// Folders that a partner has made in each of our directories there.
    pub const fn folders(self) -> &'static [&'static str] {
        match self {
            Self::Northwind | Self::Kestrel => &["inbox"],
            Self::Meridian | Self::West => &["eingang", "tmp"],
        }
    }
}

/// The partners' servers: real ones, on loopback.
pub(super) struct Servers {
    northwind: OpenSsh,
    meridian: OpenSsh,
    pub west: OpenSsh,
    pub kestrel: OpenSsh,
    /// What one of Meridian's destinations is reached through.
    pub slow: Line,
}

impl Servers {
    pub async fn start(directory: &Path) -> anyhow::Result<Self> {
        let start = |site: Site| {
            let directory = directory.join(site.name());
            async move { OpenSsh::start(&Settings { files: directory.join("files"), directory, port: None }).await }
        };
        let (northwind, meridian, west, kestrel) =
            tokio::try_join!(start(Site::Northwind), start(Site::Meridian), start(Site::West), start(Site::Kestrel))?;
        let slow = Line::start(meridian.port()).await?;
        Ok(Self { northwind, meridian, west, kestrel, slow })
    }

    pub fn at(&self, site: Site) -> &OpenSsh {
        match site {
            Site::Northwind => &self.northwind,
            Site::Meridian => &self.meridian,
            Site::West => &self.west,
            Site::Kestrel => &self.kestrel,
        }
    }
}

/// Puts both bundles into the partners directory, and has the partners make their folders.
pub(super) fn onboard(partners: &Path, plugins: &Path, servers: &Servers, crm: &str) -> anyhow::Result<Vec<Place>> {
    let mut places = Vec::new();
    for bundle in &BUNDLES {
        let directory = partners.join(bundle.name);
        fs::create_dir_all(&directory).with_context(|| format!("the bundle {} cannot be made", directory.display()))?;
        put_plugins(plugins, &directory)?;
        let mut document: Table =
            bundle.destinations.parse().context("the example of a destinations.toml is broken")?;
        for destination in entries(&mut document)? {
            places.push(place(destination, bundle.name, servers, crm)?);
        }
        for (file, text) in [("partner.toml", bundle.manifest), ("destinations.toml", &document.to_string())] {
            let path = directory.join(file);
            fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
        }
    }
    for place in &places {
        for folder in place.site.folders() {
            let folder = servers.at(place.site).files().join(&place.directory).join(folder);
            fs::create_dir_all(&folder)
                .with_context(|| format!("the partner's {} cannot be made", folder.display()))?;
        }
    }
    Ok(places)
}

/// Puts both plugins into a bundle.
pub(super) fn put_plugins(plugins: &Path, bundle: &Path) -> anyhow::Result<()> {
    for (plugin, file) in [("csv-builder", "builder.wasm"), ("sftp-destination", "destination.wasm")] {
        let from = plugin_file(plugins, plugin);
        fs::copy(&from, bundle.join(file)).with_context(|| {
            format!(
                "the plugin {} is not there; build it with `make plugins`, or name its directory with --plugins",
                from.display()
            )
        })?;
    }
    Ok(())
}

pub(super) fn plugin_file(plugins: &Path, plugin: &str) -> PathBuf {
    plugins.join(format!("{plugin}.wasm"))
}

fn entries(document: &mut Table) -> anyhow::Result<Vec<&mut Table>> {
    let list = document.get_mut("destination").and_then(Value::as_array_mut).context("there is no [[destination]]")?;
    Ok(list.iter_mut().filter_map(Value::as_table_mut).collect())
}

/// Puts in what only this run knows.
fn place(entry: &mut Table, partner: &'static str, servers: &Servers, crm: &str) -> anyhow::Result<Place> {
    let text = |key: &str| {
        entry.get(key).and_then(Value::as_str).map(str::to_owned).with_context(|| format!("a destination has no {key}"))
    };
    let (site, slow) = match text("host")?.as_str() {
        "sftp.northwind.example" => (Site::Northwind, false),
        "sftp.meridian.example" => (Site::Meridian, false),
        "slow.meridian.example" => (Site::Meridian, true),
        "west.meridian.example" => (Site::West, false),
        other => bail!("the demo has no server for {other}"),
    };
    let place = Place {
        id: text("id")?.parse().context("a destination's id")?,
        name: text("name")?,
        tenant: text("tenant")?.parse().context("a destination's tenant")?,
        partner,
        site,
        directory: text("directory")?,
    };
    let server = servers.at(site);
    let port = if slow { servers.slow.port() } else { server.port() };
    reach(entry, server, port, crm)?;
    Ok(place)
}

/// Puts in how a partner's server and the customer database are reached.
pub(super) fn reach(entry: &mut Table, server: &OpenSsh, port: u16, crm: &str) -> anyhow::Result<()> {
    entry.insert("host".to_owned(), "127.0.0.1".into());
    entry.insert("port".to_owned(), i64::from(port).into());
    entry.insert("user".to_owned(), server.user().into());
    entry.insert("host_keys".to_owned(), vec![server.host_key()?].into());
    entry.insert("key_file".to_owned(), server.client_key().display().to_string().into());
    let queries = entry.get_mut("queries").and_then(Value::as_table_mut).context("a destination has no queries")?;
    for (_, query) in queries.iter_mut() {
        let query = query.as_table_mut().context("a query is no table")?;
        query.remove("url_env");
        query.insert("url".to_owned(), crm.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::Manifest;

    #[test]
    fn the_example_partners_are_what_the_host_accepts() {
        for bundle in &BUNDLES {
            let manifest = Manifest::parse(bundle.manifest).unwrap();
            assert_eq!(manifest.partner, bundle.name);
            let mut document: Table = bundle.destinations.parse().unwrap();
            assert!(!entries(&mut document).unwrap().is_empty());
        }
    }
}

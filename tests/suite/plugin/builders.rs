//! What the shipped builders make, read back: gzip by its crate, OpenPGP by GnuPG.

use std::io::Read as _;
use std::sync::Arc;

use futures::future::BoxFuture;
use time::OffsetDateTime;
use time::macros::datetime;
use tokio_util::sync::CancellationToken;
use waybill::job::model::ClaimedJob;
use waybill::plugin::{Bundle, CallError, OpenQuery};
use waybill::source::{Column, Rows, SourceError, Value};

use super::fixture::{Partners, Table, destination, job};
use super::gpg::Gpg;

const NOW: OffsetDateTime = datetime!(2026-03-02 08:15:00 UTC);

async fn bundle(partners: &Partners, builder: &str, limits: &str) -> anyhow::Result<Arc<Bundle>> {
    partners.bundle(builder, builder, "sftp-destination", limits)?;
    let turn = waybill_tests::house::compiling().await?;
    let loaded = partners.load().await?;
    drop(turn);
    let found = loaded.into_iter().find(|bundle| bundle.partner == builder);
    found.ok_or_else(|| anyhow::anyhow!("no bundle for {builder}"))
}

/// The bytes that a build makes of these rows, or how it failed.
async fn built(
    partners: &Partners,
    bundle: &Bundle,
    settings: &[(&str, &str)],
    rows: impl OpenQuery + 'static,
    created_at: OffsetDateTime,
) -> anyhow::Result<Result<Vec<u8>, CallError>> {
    let destination = destination(bundle, settings, rows);
    let job = ClaimedJob { created_at, ..job(&destination) };
    let draft = partners.spool.create(bundle.manifest.limits.output_bytes())?;
    Ok(match bundle.build(&destination, &job, draft, &CancellationToken::new()).await {
        Ok(built) => Ok(built.file.read_at(0, usize::try_from(built.file.bytes())?).await?.to_vec()),
        Err(error) => Err(error),
    })
}

#[tokio::test]
async fn gzip_is_the_same_bytes_every_time_and_reads_back_as_the_plain_file() -> anyhow::Result<()> {
    let partners = Partners::sharing_the_cache()?;
    for (builder, columns) in
        [("csv-builder", ""), ("fixed-width-builder", "name=20"), ("json-lines-builder", ""), ("xml-builder", "")]
    {
        let bundle = bundle(&partners, builder, "").await?;
        let plain = built(&partners, &bundle, &[("columns", columns)], Table(3000), NOW).await??;
        let settings = [("columns", columns), ("compress", "gzip")];
        let first = built(&partners, &bundle, &settings, Table(3000), NOW).await??;
        let second = built(&partners, &bundle, &settings, Table(3000), NOW).await??;
        assert!(first == second, "{builder}: two builds of the same rows differ");
        assert!(first.len() < plain.len() / 2, "{builder}: {} bytes of {}", first.len(), plain.len());
        let mut back = Vec::new();
        flate2::read::GzDecoder::new(first.as_slice()).read_to_end(&mut back)?;
        assert!(back == plain, "{builder}: another file came out of it");
    }
    Ok(())
}

#[tokio::test]
async fn openpgp_is_read_by_each_recipient_and_no_two_builds_are_the_same() -> anyhow::Result<()> {
    let partners = Partners::sharing_the_cache()?;
    let plain_settings = [("columns", "name=Full name"), ("line_ending", "lf")];
    let csv = bundle(&partners, "csv-builder", "").await?;
    let plain = built(&partners, &csv, &plain_settings, Table(3000), NOW).await??;
    assert_eq!(plain, built(&partners, &csv, &plain_settings, Table(3000), NOW).await??);

    // One has a subkey on a curve, as GnuPG makes them today, the other an old key whose primary part encrypts.
    let (one, other, stranger) = (Gpg::new()?, Gpg::new()?, Gpg::new()?);
    let modern = one.key("ed25519", "sign", "never")?;
    one.subkey(&modern, "cv25519", "never")?;
    let old = other.key("rsa2048", "encr", "never")?;
    let recipients = format!("{}\n{}", one.public(&modern)?, other.public(&old)?);

    let pgp = bundle(&partners, "openpgp-builder", "").await?;
    let mut seen: Vec<Vec<u8>> = Vec::new();
    let variants: [&[(&str, &str)]; 4] = [&[], &[], &[("armor", "yes")], &[("compress", "gzip")]];
    for more in variants {
        let settings = [&plain_settings[..], &[("recipients", recipients.as_str())], more].concat();
        let message = built(&partners, &pgp, &settings, Table(3000), NOW).await??;
        for home in [&one, &other] {
            let inside = home.decrypt(&message)?;
            if more == [("compress", "gzip")] {
                let mut back = Vec::new();
                flate2::read::GzDecoder::new(inside.as_slice()).read_to_end(&mut back)?;
                assert!(back == plain && message.len() < plain.len() / 2, "{} bytes", message.len());
            } else {
                assert!(inside == plain, "{more:?}: another file came out of it");
            }
        }
        assert_eq!(message.starts_with(b"-----BEGIN PGP MESSAGE-----\n"), more == [("armor", "yes")]);
        assert!(!seen.contains(&message), "two builds are the same");
        seen.push(message);
    }
    let refused = stranger.decrypt(&seen[0]).unwrap_err().to_string();
    assert!(refused.contains("No secret key"), "{refused}");
    // One byte that was changed on the way is found.
    let mut changed = seen.swap_remove(0);
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    assert!(one.decrypt(&changed).is_err());
    Ok(())
}

#[tokio::test]
async fn openpgp_refuses_a_key_that_cannot_be_used_and_says_what_to_do() -> anyhow::Result<()> {
    let partners = Partners::sharing_the_cache()?;
    let bundle = bundle(&partners, "openpgp-builder", "").await?;
    let gpg = Gpg::new()?;
    let expired = gpg.key("ed25519", "sign", "20200229T120000")?;
    gpg.subkey(&expired, "cv25519", "never")?;
    let revoked = gpg.key("rsa2048", "encr", "never")?;
    gpg.revoke(&revoked)?;
    let signs = gpg.key("ed25519", "sign", "never")?;
    let part_expired = gpg.key("ed25519", "cert", "never")?;
    gpg.subkey(&part_expired, "cv25519", "20201231T235959")?;
    let damaged = gpg.public(&signs)?.replacen("\n\n", "\n\nAAAA", 1);

    for (key, told, then) in [
        (gpg.public(&expired)?, "expired at 2020-02-29T12:00:00Z", "with a later date"),
        (gpg.public(&revoked)?, "was revoked", "the key that replaces it"),
        (gpg.public(&signs)?, "can sign and has no part for encryption", "a key that can encrypt"),
        (gpg.public(&part_expired)?, "its subkey expired at 2020-12-31T23:59:59Z", "with a new subkey"),
        (gpg.private(&signs)?, "holds a private key", "put the public key there"),
        (damaged, "number 1) that cannot be read", "the armored text of each recipient's public key"),
        ("see attached".to_owned(), "has no key", "the armored text of each recipient's public key"),
        (String::new(), "recipients\\\" is missing", "set it in the manifest's [options]"),
    ] {
        let failed = built(&partners, &bundle, &[("recipients", &key)], Table(1), NOW).await?.expect_err(told);
        let said = failed.to_string();
        assert!(said.contains("invalid") && said.contains(told) && said.contains(then), "{said}");
    }
    // Each by its fingerprint, and one bad key is enough; at its time it was good.
    let two = format!("{}{}", gpg.public(&part_expired)?, gpg.public(&expired)?);
    let failed = built(&partners, &bundle, &[("recipients", &two)], Table(1), NOW).await?.expect_err("expired");
    assert!(failed.to_string().contains(&format!("the key {part_expired}")), "{failed}");
    let earlier = datetime!(2020-02-29 11:59:59 UTC);
    let message = built(&partners, &bundle, &[("recipients", &two)], Table(1), earlier).await??;
    assert_eq!(gpg.decrypt(&message)?, b"name\r\ncontact 0\r\n");
    Ok(())
}

/// So many rows of one long text, a few a batch.
struct Long(usize);

impl OpenQuery for Long {
    fn open<'a>(&'a self, _: &'a str, _: &'a [(String, String)]) -> BoxFuture<'a, Result<Box<dyn Rows>, SourceError>> {
        let columns = vec![Column { name: "name".to_owned(), of: "text".to_owned() }];
        Box::pin(async move { Ok(Box::new(LongRows { columns, left: self.0 }) as Box<dyn Rows>) })
    }
}

struct LongRows {
    columns: Vec<Column>,
    left: usize,
}

impl Rows for LongRows {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn next(&mut self, _: u32) -> BoxFuture<'_, Result<Vec<Vec<Value>>, SourceError>> {
        let now = self.left.min(4);
        self.left -= now;
        Box::pin(async move { Ok(vec![vec![Value::Text("x".repeat(64 * 1024))]; now]) })
    }
}

#[tokio::test]
async fn a_file_larger_than_the_memory_is_compressed_and_encrypted_on_the_way() -> anyhow::Result<()> {
    const ROWS: usize = 320;
    let partners = Partners::sharing_the_cache()?;
    let bundle = bundle(&partners, "openpgp-builder", "[limits]\nmemory_mib = 8\noutput_mib = 64\n").await?;
    let gpg = Gpg::new()?;
    let key = gpg.key("rsa2048", "encr", "never")?;
    let recipients = gpg.public(&key)?;
    let settings = [("recipients", recipients.as_str())];
    let message = built(&partners, &bundle, &settings, Long(ROWS), NOW).await??;
    assert!(message.len() > ROWS * 64 * 1024, "{} bytes", message.len());
    assert_eq!(gpg.decrypt(&message)?.len(), "name\r\n".len() + ROWS * (64 * 1024 + 2));
    let settings = [("recipients", recipients.as_str()), ("compress", "gzip")];
    let message = built(&partners, &bundle, &settings, Long(ROWS), NOW).await??;
    assert!(message.len() < 64 * 1024, "{} bytes", message.len());
    Ok(())
}

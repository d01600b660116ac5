//! One build by each language's builder, with settings that are rarer than the example bundle's, and with wrong ones.

use std::sync::Arc;

use futures::future::BoxFuture;
use waybill::plugin::{Bundle, CallError, OpenQuery};
use waybill::source::{Column, Rows, SourceError, Value};

use super::LANGUAGES;
use crate::plugin::fixture::{Partners, destination};

/// Two columns of every kind of value.
struct Few;

struct FewRows {
    columns: Vec<Column>,
    rows: Vec<Vec<Value>>,
}

impl OpenQuery for Few {
    fn open<'a>(&'a self, _: &'a str, _: &'a [(String, String)]) -> BoxFuture<'a, Result<Box<dyn Rows>, SourceError>> {
        let columns = ["id", "name"].map(|name| Column { name: name.to_owned(), of: "text".to_owned() }).to_vec();
        let text = |text: &str| Value::Text(text.to_owned());
        let rows = vec![
            vec![Value::Integer(i64::MIN), text("a;b\tc|d")],
            vec![Value::Boolean(true), Value::Null],
            vec![Value::Boolean(false), Value::Bytes(vec![0, 10, 255])],
            vec![Value::Float(1e-7), text("")],
            vec![Value::Float(1.0), text("\"")],
            vec![Value::Null, Value::Float(123_456_789_012_345_680.0)],
        ];
        Box::pin(async move { Ok(Box::new(FewRows { columns, rows }) as Box<dyn Rows>) })
    }
}

impl Rows for FewRows {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn next(&mut self, _: u32) -> BoxFuture<'_, Result<Vec<Vec<Value>>, SourceError>> {
        let rows = std::mem::take(&mut self.rows);
        Box::pin(async move { Ok(rows) })
    }
}

async fn bundles(partners: &Partners) -> anyhow::Result<Vec<(&'static str, Arc<Bundle>)>> {
    for language in LANGUAGES {
        partners.bundle(&language.name.to_lowercase(), language.builder, language.destination, "")?;
    }
    let turn = waybill_tests::house::compiling().await?;
    let loaded = partners.load().await?;
    drop(turn);
    LANGUAGES
        .iter()
        .map(|language| {
            let bundle = loaded.iter().find(|bundle| bundle.partner == language.name.to_lowercase());
            let bundle = bundle.ok_or_else(|| anyhow::anyhow!("no bundle for {}", language.name))?;
            Ok((language.name, Arc::clone(bundle)))
        })
        .collect()
}

/// What a build brought: the file's bytes and its rows, or how it failed.
async fn build(
    partners: &Partners,
    bundle: &Bundle,
    settings: &[(&str, &str)],
) -> anyhow::Result<Result<(Vec<u8>, u64), CallError>> {
    Ok(match partners.build(bundle, &destination(bundle, settings, Few)).await {
        Ok(built) => Ok((built.file.read_at(0, 1 << 20).await?.to_vec(), built.rows)),
        Err(error) => Err(error),
    })
}

#[tokio::test]
async fn plg_07_rarer_and_wrong_settings_mean_the_same_in_three_languages() -> anyhow::Result<()> {
    let partners = Partners::sharing_the_cache()?;
    let bundles = bundles(&partners).await?;
    let settings: [&[(&str, &str)]; 14] = [
        &[],
        &[
            ("delimiter", ";"),
            ("quote", "always"),
            ("line_ending", "LF"),
            ("null", "NULL"),
            ("true", "J"),
            ("false", "N"),
        ],
        &[("delimiter", "tab"), ("header", "no"), ("columns", "name=Full name, \"id=No, or \"\"number\"\"\"")],
        &[("delimiter", "|"), ("columns", "name")],
        &[("columns", "\n name = Name \n\n id \n"), ("header", "True")],
        &[("parameters", "")],
        // From here on each is refused.
        &[("columns", "street=Street")],
        &[("columns", "=Header")],
        &[("columns", "\"id=No")],
        &[("delimiter", ";;")],
        &[("delimiter", "\u{e9}")],
        &[("quote", "never")],
        &[("header", "perhaps")],
        &[("parameters", "list, since")],
    ];
    for (at, settings) in settings.into_iter().enumerate() {
        let mut first = None;
        for (language, bundle) in &bundles {
            let outcome = build(&partners, bundle, settings).await?;
            assert_eq!(outcome.is_ok(), at < 6, "{language}, {settings:?}: {outcome:?}");
            let first = first.get_or_insert_with(|| outcome.clone());
            match (&outcome, first) {
                (Ok((theirs, rows)), Ok((ours, count))) => {
                    assert_eq!(
                        String::from_utf8_lossy(theirs),
                        String::from_utf8_lossy(ours),
                        "{language}, {settings:?}"
                    );
                    assert_eq!((*rows, *count), (6, 6), "{language}");
                }
                // The same words: an operator reads them whatever the plugin was written in.
                (theirs, ours) => assert_eq!(theirs, ours, "{language}, {settings:?}"),
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn what_only_rust_offers_is_refused_by_name() -> anyhow::Result<()> {
    let partners = Partners::sharing_the_cache()?;
    for (language, bundle) in bundles(&partners).await?.into_iter().skip(1) {
        for (setting, value, known) in [("encoding", "windows-1252", "utf-8"), ("compress", "gzip", "none")] {
            let outcome = build(&partners, &bundle, &[(setting, value)]).await?;
            let error = outcome.expect_err(language).to_string();
            let told = format!("use one of: {known}");
            assert!(error.contains(&told) && error.contains("invalid"), "{language}, {setting}: {error}");
        }
    }
    Ok(())
}

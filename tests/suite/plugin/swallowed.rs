//! PLG-03: what a guest was told that it cannot have, it cannot swallow: a file that came of it is no file.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use waybill::job::remedy::Remedy;
use waybill::plugin::{CallError, OpenQuery};
use waybill::source::{Column, Rows, SourceError, Value};
use waybill::spool::Spool;
use waybill_tests::SmallDisk;

use super::fixture::{Away, Broken, Partners, destination, job};

fn rows() -> String {
    "rows".to_owned()
}

#[tokio::test]
async fn plg_03_a_row_stream_that_a_guest_takes_for_ended_makes_no_file() -> anyhow::Result<()> {
    let partners = Partners::new()?;
    partners.bundle("one", "misbehaving-builder", "misbehaving-destination", "")?;
    let bundle = partners.load_only().await?;
    let lost: fn() -> SourceError = || SourceError::Lost { query: rows(), row: 5000, why: "reset".to_owned() };
    let off: fn() -> SourceError = || SourceError::BrokenOff { query: rows(), row: 5000, why: "conflict".to_owned() };
    let address: fn() -> SourceError = || SourceError::Address { query: rows(), why: "CRM_URL is not set".to_owned() };
    for (error, remedy) in [(lost, Remedy::Reachable), (off, Remedy::AnotherAttempt), (address, Remedy::Person)] {
        for before in [0, 5000] {
            let one = destination(&bundle, &[("behaviour", "swallow-lost-rows")], Broken(before, error));
            let ended = partners.build(&bundle, &one).await.map(|built| built.rows);
            assert_eq!(ended, Err(CallError::Host { what: error().to_string(), remedy }));
        }
    }
    let refused: fn() -> SourceError = || SourceError::Refused { query: rows(), why: "SQLSTATE 22012".to_owned() };
    let unreadable: fn() -> SourceError = || SourceError::Unreadable {
        query: rows(),
        row: 5001,
        column: "name".to_owned(),
        why: "it is not UTF-8".to_owned(),
    };
    for error in [refused, unreadable] {
        let one = destination(&bundle, &[("behaviour", "swallow-lost-rows")], Broken(5000, error));
        let ended = partners.build(&bundle, &one).await.map(|built| built.rows);
        assert!(matches!(&ended, Err(CallError::Broke { what }) if what.ends_with(&error().to_string())), "{ended:?}");
    }
    Ok(())
}

#[tokio::test]
async fn plg_03_a_guest_that_ends_at_a_fault_of_the_host_is_not_blamed_for_it() -> anyhow::Result<()> {
    let partners = Partners::new()?;
    partners.bundle("one", "misbehaving-builder", "misbehaving-destination", "")?;
    let bundle = partners.load_only().await?;
    // It panics where it is not given another handle.
    let panicking = destination(&bundle, &[("behaviour", "leak-handles")], Away);
    let ended = partners.build(&bundle, &panicking).await.map(|built| built.rows);
    assert!(matches!(&ended, Err(CallError::Host { remedy: Remedy::Reachable, .. })), "{ended:?}");
    Ok(())
}

/// Two rows; room is made on the disk before the second one.
struct Freeing(Arc<PathBuf>);

impl OpenQuery for Freeing {
    fn open<'a>(&'a self, _: &'a str, _: &'a [(String, String)]) -> BoxFuture<'a, Result<Box<dyn Rows>, SourceError>> {
        let columns = vec![Column { name: "name".to_owned(), of: "text".to_owned() }];
        let rows = FreeingRows { columns, filler: Arc::clone(&self.0), given: 0 };
        Box::pin(async move { Ok(Box::new(rows) as Box<dyn Rows>) })
    }
}

struct FreeingRows {
    columns: Vec<Column>,
    filler: Arc<PathBuf>,
    given: u8,
}

impl Rows for FreeingRows {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn next(&mut self, _: u32) -> BoxFuture<'_, Result<Vec<Vec<Value>>, SourceError>> {
        Box::pin(async move {
            self.given += 1;
            if self.given == 2 {
                std::fs::remove_file(self.filler.as_path()).unwrap();
            }
            // Larger than what is gathered before the file system is asked.
            let row = vec![Value::Text(self.given.to_string().repeat(300 * 1024))];
            Ok(if self.given > 2 { Vec::new() } else { vec![row] })
        })
    }
}

#[tokio::test]
async fn plg_03_a_spool_that_was_full_for_a_moment_makes_no_file_with_a_hole() -> anyhow::Result<()> {
    let partners = Partners::new()?;
    partners.bundle("one", "misbehaving-builder", "misbehaving-destination", "")?;
    let bundle = partners.load_only().await?;
    let directory = tempfile::tempdir()?;
    let _disk = SmallDisk::mount(directory.path(), 2048)?;
    let filler = directory.path().join("filler");
    let full = std::fs::write(&filler, vec![0; 4 << 20]).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    let draft = Spool::open(directory.path())?.create(1 << 30)?;
    let one = destination(&bundle, &[("behaviour", "swallow-full-spool")], Freeing(Arc::new(filler.clone())));
    let ended = bundle.build(&one, &job(&one), draft, &CancellationToken::new()).await;
    assert!(!filler.exists(), "there was never room");
    let ended = ended.map(|built| built.file.bytes());
    assert!(
        matches!(&ended, Err(CallError::Host { what, remedy: Remedy::AnotherAttempt }) if what.contains("no space is left")),
        "{ended:?}"
    );
    Ok(())
}

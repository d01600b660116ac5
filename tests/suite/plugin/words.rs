//! PLG-08: a guest's words are kept without the values that it was handed, however it says them.

use futures::future::BoxFuture;
use waybill::plugin::{CallError, OpenQuery};
use waybill::source::{Column, Rows, SourceError, Value};

use super::fixture::{Partners, destination};

/// One row of everything that a person may be known by.
struct Person;

impl OpenQuery for Person {
    fn open<'a>(&'a self, _: &'a str, _: &'a [(String, String)]) -> BoxFuture<'a, Result<Box<dyn Rows>, SourceError>> {
        let columns = ["text", "integer", "float", "bytes", "json"];
        let columns = columns.map(|of| Column { name: of.to_owned(), of: of.to_owned() }).to_vec();
        Box::pin(async move { Ok(Box::new(One { columns, given: false }) as Box<dyn Rows>) })
    }
}

struct One {
    columns: Vec<Column>,
    given: bool,
}

impl Rows for One {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn next(&mut self, _: u32) -> BoxFuture<'_, Result<Vec<Vec<Value>>, SourceError>> {
        let row = vec![
            Value::Text("Canary Quillfeather".to_owned()),
            Value::Integer(46_701_234_567),
            Value::Float(59.329_324),
            Value::Bytes(b"canary@example.com".to_vec()),
            Value::Text("{\"name\": \"Canary\"}".to_owned()),
        ];
        let batch = if std::mem::replace(&mut self.given, true) { Vec::new() } else { vec![row] };
        Box::pin(async move { Ok(batch) })
    }
}

#[tokio::test]
async fn plg_08_neither_a_failure_nor_a_trap_tells_what_a_guest_was_handed() -> anyhow::Result<()> {
    const SAID: &str = "the first row holds (a value) and (a value) and (a value) and (a value) and (a value)";
    let partners = Partners::new()?;
    partners.bundle("one", "misbehaving-builder", "misbehaving-destination", "")?;
    let bundle = partners.load_only().await?;
    let quiet = destination(&bundle, &[("behaviour", "tell")], Person);
    let failed = partners.build(&bundle, &quiet).await.map(|built| built.rows);
    assert!(matches!(&failed, Err(CallError::Failed { text, .. }) if text == SAID), "{failed:?}");
    let loud = destination(&bundle, &[("behaviour", "tell"), ("loudly", "yes")], Person);
    let trapped = partners.build(&bundle, &loud).await.map(|built| built.rows);
    assert!(matches!(&trapped, Err(CallError::Trapped { message }) if message.contains(SAID)), "{trapped:?}");
    let said = format!("{trapped:?}");
    for canary in ["Canary", "Quillfeather", "46701234567", "59.329324", "canary@example.com"] {
        assert!(!said.contains(canary), "{canary} is in {said}");
    }
    Ok(())
}

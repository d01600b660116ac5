//! What builders of files of rows share, whatever the files look like.
//!
//! The way of a row: [`Query`] names where it comes from, [`columns`] and [`pick`] which of its values go into the file and under
//! which names, [`Words`] writes a value as text, a [`Format`] makes bytes of the row with an [`Encoder`], and [`write`] brings
//! them to the output, through [`Compression`] if the partner wants it.
//!
//! Settings are read when the build begins, so that a mistake in them shows before the first byte. An error about a value names row,
//! column and the position in the value, and never the value: it is a person's.
//!
//! | setting | read by | meaning | default |
//! | --- | --- | --- | --- |
//! | `query` | [`Query`] | name of the query | `rows` |
//! | `parameters` | [`Query`] | names of the scope's entries that are the query's parameters, separated by commas | all of the scope |
//! | `null` | [`Words`] | the text of a missing value | empty |
//! | `true`, `false` | [`Words`] | the texts of booleans | `true`, `false` |
//! | `compress` | [`Compression`] | `none` or `gzip` | `none` |

mod charset;
mod columns;
mod compress;
mod file;
mod query;
mod words;

pub use charset::{Charset, Encoder, Unencodable};
pub use columns::{Picked, Wanted, columns, named_once, pick};
pub use compress::{Compressed, Compression};
pub use file::{File, Format, write};
pub use query::Query;
pub use words::Words;

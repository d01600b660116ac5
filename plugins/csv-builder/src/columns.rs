//! Which columns go into the file, in which order, under which headers.

use waybill_guest::{Column, Failure};

/// One entry of the setting `columns`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub column: String,
    pub header: String,
}

/// A column that was found in the query's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picked {
    /// Its place in a row.
    pub index: usize,
    pub column: String,
    pub header: String,
}

/// Reads the setting `columns`: entries one a line or separated by commas; between quotes a comma is text.
pub fn parse(text: &str) -> Result<Vec<Wanted>, Failure> {
    let mut wanted = Vec::new();
    for entry in entries(text)? {
        let (column, header) = entry.split_once('=').unwrap_or((&entry, &entry));
        let (column, header) = (column.trim(), header.trim());
        if column.is_empty() {
            return Err(Failure::Invalid(format!(
                "the setting \"columns\" has the entry {entry:?} without a column: write column=Header text"
            )));
        }
        wanted.push(Wanted { column: column.to_owned(), header: header.to_owned() });
    }
    Ok(wanted)
}

/// The entries that are not blank, without their quotes. A doubled quote between quotes is one quote.
fn entries(text: &str) -> Result<Vec<String>, Failure> {
    let mut entries = vec![];
    let mut entry = String::new();
    let mut quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.next_if_eq(&'"').is_some() => entry.push('"'),
            '"' => quoted = !quoted,
            ',' | '\n' if !quoted => entries.push(std::mem::take(&mut entry)),
            _ => entry.push(character),
        }
    }
    if quoted {
        return Err(Failure::Invalid("the setting \"columns\" has a quote that is not closed".to_owned()));
    }
    entries.push(entry);
    entries.retain(|entry| !entry.trim().is_empty());
    Ok(entries)
}

/// Finds the wanted columns in the query's result. None wanted: all, under their own names.
pub fn pick(wanted: &[Wanted], present: &[Column], query: &str) -> Result<Vec<Picked>, Failure> {
    let names: Vec<&str> = present.iter().map(|column| column.name.as_str()).collect();
    if wanted.is_empty() {
        let all = names.iter().enumerate();
        return Ok(all
            .map(|(index, name)| Picked { index, column: (*name).to_owned(), header: (*name).to_owned() })
            .collect());
    }
    wanted
        .iter()
        .map(|Wanted { column, header }| {
            let index = names.iter().position(|name| name == column).ok_or_else(|| {
                Failure::Invalid(format!(
                    "the setting \"columns\" names {column:?}, which the query {query:?} does not return; it returns: {}",
                    names.join(", ")
                ))
            })?;
            Ok(Picked { index, column: column.clone(), header: header.clone() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(column: &str, header: &str) -> Wanted {
        Wanted { column: column.into(), header: header.into() }
    }

    fn present() -> Vec<Column> {
        ["id", "name", "city"].map(|name| Column { name: name.into(), of: "text".into() }).into()
    }

    #[test]
    fn entries_stand_on_lines_or_between_commas() {
        let expected = [wanted("name", "Full name"), wanted("city", "City, country"), wanted("id", "id")];
        assert_eq!(parse("name=Full name, \"city=City, country\", id").unwrap(), expected);
        assert_eq!(parse("name = Full name\n\"city=City, country\"\n\nid\n").unwrap(), expected);
        assert!(parse("").unwrap().is_empty());
        assert_eq!(parse("id=A=B").unwrap(), [wanted("id", "A=B")]);
        assert_eq!(parse("id=\"The \"\"No\"\"\"").unwrap(), [wanted("id", "The \"No\"")]);
        assert!(parse("=Header").is_err() && parse("id=\"No").is_err());
    }

    #[test]
    fn the_order_is_the_settings_or_the_querys() {
        let picked = pick(&[wanted("city", "City"), wanted("id", "Number")], &present(), "rows").unwrap();
        assert_eq!(picked.iter().map(|picked| picked.index).collect::<Vec<_>>(), [2, 0]);
        let all = pick(&[], &present(), "rows").unwrap();
        assert_eq!(all.iter().map(|picked| picked.header.as_str()).collect::<Vec<_>>(), ["id", "name", "city"]);
    }

    #[test]
    fn a_column_that_is_not_there_is_named_with_those_that_are() {
        let failure = pick(&[wanted("street", "Street")], &present(), "contacts").unwrap_err();
        let text = "names \"street\", which the query \"contacts\" does not return; it returns: id, name, city";
        assert!(failure.reason().ends_with(text), "{failure:?}");
    }
}

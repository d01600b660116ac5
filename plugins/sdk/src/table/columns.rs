//! Which columns go into the file, in which order, under which headers.

use crate::{Column, Failure, Row, Value};

/// One entry of a setting such as `columns`: `column=Header text`, or `column` alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub column: String,
    /// The column's own name where the entry has nothing else.
    pub header: String,
}

/// A column that was found in the query's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picked {
    /// Its place in a row.
    pub index: usize,
    pub column: String,
    pub header: String,
    /// The kind of its values, in the contract's words.
    pub of: String,
}

impl Picked {
    /// Its value in a row.
    pub fn value<'a>(&self, number: u64, row: &'a Row) -> Result<&'a Value, Failure> {
        let missing =
            || format!("row {number} has no value for the column {:?}: the query returned too few", self.column);
        Ok(row.get(self.index).ok_or_else(missing)?)
    }

    /// What an error says about where it is: row and column, and not the value.
    pub fn place(&self, number: u64) -> String {
        format!("row {number}, column {:?}", self.column)
    }
}

/// Reads a setting such as `columns`: entries one a line or separated by commas; between quotes a comma is text. The form is what an
/// error tells to write.
pub fn columns(setting: &str, text: &str, form: &str) -> Result<Vec<Wanted>, Failure> {
    let mut wanted = Vec::new();
    for entry in entries(setting, text)? {
        let (column, header) = entry.split_once('=').unwrap_or((&entry, &entry));
        let (column, header) = (column.trim(), header.trim());
        if column.is_empty() {
            return Err(Failure::Invalid(format!(
                "the setting {setting:?} has the entry {entry:?} without a column: write {form}"
            )));
        }
        wanted.push(Wanted { column: column.to_owned(), header: header.to_owned() });
    }
    Ok(wanted)
}

/// The entries that are not blank, without their quotes. A doubled quote between quotes is one quote.
fn entries(setting: &str, text: &str) -> Result<Vec<String>, Failure> {
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
        return Err(Failure::Invalid(format!("the setting {setting:?} has a quote that is not closed")));
    }
    entries.push(entry);
    entries.retain(|entry| !entry.trim().is_empty());
    Ok(entries)
}

/// Finds the wanted columns in the query's result. None wanted: all, under their own names.
pub fn pick(wanted: &[Wanted], present: &[Column], query: &str) -> Result<Vec<Picked>, Failure> {
    let picked = |index: usize, found: &Column, header: &str| Picked {
        index,
        column: found.name.clone(),
        header: header.to_owned(),
        of: found.of.clone(),
    };
    if wanted.is_empty() {
        return Ok(present.iter().enumerate().map(|(index, found)| picked(index, found, &found.name)).collect());
    }
    wanted
        .iter()
        .map(|Wanted { column, header }| {
            let found = present.iter().enumerate().find(|(_, found)| found.name == *column);
            let (index, found) = found.ok_or_else(|| {
                let names: Vec<&str> = present.iter().map(|found| found.name.as_str()).collect();
                Failure::Invalid(format!(
                    "the setting \"columns\" names {column:?}, which the query {query:?} does not return; it returns: {}",
                    names.join(", ")
                ))
            })?;
            Ok(picked(index, found, header))
        })
        .collect()
}

/// Refuses two columns under one name, for files in which a name can stand only once.
pub fn named_once(picked: &[Picked]) -> Result<(), Failure> {
    for (at, one) in picked.iter().enumerate() {
        if let Some(other) = picked.iter().take(at).find(|other| other.header == one.header) {
            return Err(Failure::Invalid(format!(
                "the columns {:?} and {:?} have the same name {:?} in the file: give one of them another in the setting \"columns\"",
                other.column, one.column, one.header
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(column: &str, header: &str) -> Wanted {
        Wanted { column: column.into(), header: header.into() }
    }

    fn parsed(text: &str) -> Result<Vec<Wanted>, Failure> {
        columns("columns", text, "column=Header text")
    }

    fn present() -> Vec<Column> {
        ["id", "name", "city"].map(|name| Column { name: name.into(), of: "text".into() }).into()
    }

    #[test]
    fn entries_stand_on_lines_or_between_commas() {
        let expected = [wanted("name", "Full name"), wanted("city", "City, country"), wanted("id", "id")];
        assert_eq!(parsed("name=Full name, \"city=City, country\", id").unwrap(), expected);
        assert_eq!(parsed("name = Full name\n\"city=City, country\"\n\nid\n").unwrap(), expected);
        assert!(parsed("").unwrap().is_empty());
        assert_eq!(parsed("id=A=B").unwrap(), [wanted("id", "A=B")]);
        assert_eq!(parsed("id=\"The \"\"No\"\"\"").unwrap(), [wanted("id", "The \"No\"")]);
        assert!(parsed("=Header").is_err() && parsed("id=\"No").is_err());
    }

    #[test]
    fn the_order_is_the_settings_or_the_querys() {
        let picked = pick(&[wanted("city", "City"), wanted("id", "Number")], &present(), "rows").unwrap();
        assert_eq!(picked.iter().map(|picked| picked.index).collect::<Vec<_>>(), [2, 0]);
        let all = pick(&[], &present(), "rows").unwrap();
        assert_eq!(all.iter().map(|picked| picked.header.as_str()).collect::<Vec<_>>(), ["id", "name", "city"]);
    }

    #[test]
    fn a_name_that_stands_twice_is_refused_with_both_columns() {
        let twice = pick(&[wanted("id", "name"), wanted("name", "name")], &present(), "rows").unwrap();
        let failure = named_once(&twice).unwrap_err();
        assert!(failure.reason().starts_with("the columns \"id\" and \"name\" have the same name"), "{failure:?}");
        assert_eq!(named_once(&pick(&[], &present(), "rows").unwrap()), Ok(()));
    }

    #[test]
    fn a_row_that_is_too_short_is_told_by_its_number() {
        let all = pick(&[], &present(), "rows").unwrap();
        let row = vec![Value::Integer(1)];
        assert_eq!(all[0].value(7, &row), Ok(&Value::Integer(1)));
        let failure = all[1].value(7, &row).unwrap_err();
        assert!(failure.reason().starts_with("row 7 has no value for the column \"name\""), "{failure:?}");
        assert_eq!(all[1].place(7), "row 7, column \"name\"");
    }

    #[test]
    fn a_column_that_is_not_there_is_named_with_those_that_are() {
        let failure = pick(&[wanted("street", "Street")], &present(), "contacts").unwrap_err();
        let text = "names \"street\", which the query \"contacts\" does not return; it returns: id, name, city";
        assert!(failure.reason().ends_with(text), "{failure:?}");
    }
}

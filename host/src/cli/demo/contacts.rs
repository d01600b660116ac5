//! Contacts of a customer database that never was: names, streets and phone numbers as ten countries write them.
//!
//! The same seed makes the same contacts, so that a run can be repeated. Notes hold what breaks careless CSV: commas,
//! semicolons, quotes and line breaks; Polish and Czech names hold letters that windows-1252 does not have.

use std::fmt::Write as _;

use super::dice::Dice;
use super::places::Country;

/// One row of `contacts`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Contact {
    pub number: u32,
    pub first_name: &'static str,
    pub last_name: &'static str,
    pub company: Option<String>,
    pub email: String,
    pub phone: Option<String>,
    pub street: String,
    pub postal_code: String,
    pub city: &'static str,
    pub country: &'static str,
    pub language: &'static str,
    pub newsletter: bool,
    /// In cents.
    pub credit_limit: Option<u32>,
    /// Days before 2026-11-01.
    #[expect(clippy::struct_field_names, reason = "named as the column it fills")]
    pub last_contact: Option<u32>,
    pub notes: Option<&'static str>,
}

const NOTES: [&str; 12] = [
    "Prefers to be called after 5 pm.",
    "Wants the catalogue, not the newsletter.",
    "Said: \"no calls on Mondays, please\".",
    "Two addresses; use the second one, the first is \"the old shop\".",
    "Moved.\nNew address follows by post.",
    "Key account; ask for Ms. Klein, extension 14, before noon",
    "VAT number missing; invoice on hold; see ticket 2281",
    "Met at the fair in Hannover, hall 7; wants an offer: 40 pieces, \"as last year\"",
    "Zahlt pünktlich – Skonto 2 %",
    "Liefertermin bestätigt: \"spätestens Freitag\";\nbitte vorher anrufen, Tor 3",
    "Budget jusqu'à 12 000 €, réponse attendue",
    "  keeps leading blanks, and a trailing comma,",
];

const TRADES: [&str; 10] =
    ["Logistik", "Consulting", "Möbel", "Travel", "Pharma", "Bäckerei", "Software", "Optique", "Energie", "Design"];

/// Makes `count` contacts, numbered from 1. Each tenant has a seed of its own.
pub(super) fn contacts(seed: u64, count: u32) -> impl Iterator<Item = Contact> {
    let mut dice = Dice(seed);
    (1..=count).map(move |number| contact(number, &mut dice))
}

fn contact(number: u32, dice: &mut Dice) -> Contact {
    let country = dice.country();
    let first_name = dice.one_of(country.first_names);
    let last_name = dice.one_of(country.last_names);
    let (city, postal) = *dice.one_from(country.cities);
    let company = (dice.below(100) < 62).then(|| company(country, last_name, dice));
    let domain = company.as_deref().map_or_else(
        || format!("post.{}.example", country.domain),
        |name| format!("{}.{}.example", host(name), country.domain),
    );
    Contact {
        number,
        first_name,
        last_name,
        email: format!("{}.{}{number}@{domain}", ascii(first_name), ascii(last_name)),
        phone: (dice.below(100) < 85)
            .then(|| format!("{} {} {:06}", country.prefix, 20 + dice.below(79), dice.below(1_000_000))),
        street: street(country, dice),
        postal_code: digits(postal, dice),
        city,
        country: country.code,
        language: country.language,
        newsletter: dice.below(100) < 55,
        credit_limit: (dice.below(100) < 40).then(|| 5_000 * dice.below(400) + 25 * dice.below(4)),
        last_contact: (dice.below(100) < 90).then(|| dice.below(1_400)),
        notes: (dice.below(100) < 35).then(|| dice.one_of(&NOTES)),
        company,
    }
}

fn company(country: &Country, last_name: &str, dice: &mut Dice) -> String {
    let (trade, form) = (dice.one_of(&TRADES), country.legal_form);
    match dice.below(5) {
        0 => format!("{last_name} & {} {form}", dice.one_of(country.last_names)),
        1 => format!("{last_name}, {} & Co. {form}", dice.one_of(country.last_names)),
        2 => format!("\"{trade} {last_name}\" {form}"),
        3 => format!("{trade} {} {form}", dice.one_from(country.cities).0),
        _ => format!("{last_name} {trade} {form}"),
    }
}

fn street(country: &Country, dice: &mut Dice) -> String {
    let (name, number) = (dice.one_of(country.streets), 1 + dice.below(180));
    if country.number_first { format!("{number} {name}") } else { format!("{name} {number}") }
}

/// `#` stands for a digit.
fn digits(pattern: &str, dice: &mut Dice) -> String {
    pattern
        .chars()
        .map(|one| if one == '#' { char::from(b'0' + u8::try_from(dice.below(10)).unwrap_or(0)) } else { one })
        .collect()
}

/// The letters of a company's name, as they would stand in its domain.
fn host(company: &str) -> String {
    let mut name = String::new();
    for word in company.split_whitespace().take(2) {
        let word: String = ascii(word).chars().filter(char::is_ascii_alphanumeric).collect();
        if !name.is_empty() && !word.is_empty() {
            name.push('-');
        }
        name.push_str(&word);
    }
    name
}

/// Lower case without accents.
fn ascii(text: &str) -> String {
    let mut plain = String::new();
    for letter in text.to_lowercase().chars() {
        match letter {
            'ä' | 'æ' => plain.push_str("ae"),
            'ö' | 'ø' => plain.push_str("oe"),
            'ü' => plain.push_str("ue"),
            'ß' => plain.push_str("ss"),
            'å' | 'á' | 'à' | 'â' | 'ą' => plain.push('a'),
            'č' | 'ć' | 'ç' => plain.push('c'),
            'é' | 'è' | 'ê' | 'ë' | 'ě' | 'ę' => plain.push('e'),
            'í' | 'ì' | 'ï' | 'î' => plain.push('i'),
            'ł' => plain.push('l'),
            'ñ' | 'ń' | 'ň' => plain.push('n'),
            'ó' | 'ò' | 'ô' => plain.push('o'),
            'ř' => plain.push('r'),
            'š' | 'ś' => plain.push('s'),
            'ť' => plain.push('t'),
            'ú' | 'ù' | 'ů' => plain.push('u'),
            'ý' => plain.push('y'),
            'ž' | 'ź' | 'ż' => plain.push('z'),
            '\'' | ' ' => {}
            other => plain.push(other),
        }
    }
    plain
}

impl Contact {
    /// Appends the contact as a line of COPY's text format.
    pub fn copy_line(&self, tenant: &str, to: &mut String) {
        let number = self.number.to_string();
        let newsletter = if self.newsletter { "t" } else { "f" };
        let credit = self.credit_limit.map(|cents| format!("{}.{:02}", cents / 100, cents % 100));
        let last_contact = self.last_contact.map(day);
        // To the second, and never the same for all.
        let changed_at = format!(
            "2026-10-{:02} {:02}:{:02}:{:02}+00",
            1 + self.number % 28,
            self.number % 24,
            self.number % 60,
            self.number % 59
        );
        let fields = [
            Some(tenant),
            Some(&number),
            Some(self.first_name),
            Some(self.last_name),
            self.company.as_deref(),
            Some(&self.email),
            self.phone.as_deref(),
            Some(&self.street),
            Some(&self.postal_code),
            Some(self.city),
            Some(self.country),
            Some(self.language),
            Some(newsletter),
            credit.as_deref(),
            last_contact.as_deref(),
            Some(&changed_at),
            self.notes,
        ];
        for (index, field) in fields.into_iter().enumerate() {
            if index > 0 {
                to.push('\t');
            }
            match field {
                None => to.push_str("\\N"),
                Some(text) => escape(text, to),
            }
        }
        to.push('\n');
    }
}

fn escape(text: &str, to: &mut String) {
    for letter in text.chars() {
        match letter {
            '\\' => to.push_str("\\\\"),
            '\n' => to.push_str("\\n"),
            '\t' => to.push_str("\\t"),
            '\r' => to.push_str("\\r"),
            other => to.push(other),
        }
    }
}

/// A day in the four years before, as months of 28 days: any valid date will do.
fn day(before: u32) -> String {
    let mut text = String::new();
    let (years, rest) = (before / 336, before % 336);
    // Writing to a string cannot fail.
    let _ = write!(text, "{}-{:02}-{:02}", 2026 - years, 1 + rest / 28 % 10, 1 + rest % 28);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::demo::places::COUNTRIES;

    #[test]
    fn the_same_seed_makes_the_same_contacts() {
        let twice = || contacts(7, 500).collect::<Vec<_>>();
        assert_eq!(twice(), twice());
        assert_ne!(contacts(8, 500).collect::<Vec<_>>(), twice());
    }

    #[test]
    fn what_breaks_careless_csv_is_there() {
        let all: Vec<Contact> = contacts(1, 3000).collect();
        for piece in [",", ";", "\"", "\n"] {
            assert!(all.iter().any(|one| one.notes.is_some_and(|notes| notes.contains(piece))), "{piece:?}");
        }
        assert!(all.iter().any(|one| one.country == "PL" && one.last_name.contains('ł')));
        assert!(COUNTRIES.iter().all(|country| all.iter().any(|one| one.country == country.code)));
        assert!(all.iter().all(|one| one.email.is_ascii()), "an address with an accent");
    }

    #[test]
    fn a_line_of_copy_escapes_what_ends_a_field() {
        let mut line = String::new();
        escape("a\tb\\c\nd", &mut line);
        assert_eq!(line, "a\\tb\\\\c\\nd");
    }
}

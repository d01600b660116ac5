//! PostgreSQL's binary values as plugins see them. What has no agreed text form is refused by column, before any row.

use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgTypeInfo, PgTypeKind, PgValueFormat, PgValueRef};
use sqlx::types::BigDecimal;
use sqlx::{Decode, Postgres, TypeInfo as _, ValueRef as _};
use time::format_description::well_known::Rfc3339;
use time::macros::datetime;
use time::{Duration, PrimitiveDateTime, Time, UtcOffset};

use super::Value;

/// How a column's values are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    Boolean,
    Int2,
    Int4,
    Int8,
    Oid,
    Float4,
    Float8,
    Numeric,
    Text,
    Bytes,
    Json,
    Jsonb,
    Uuid,
    Date,
    Time,
    TimeTz,
    Timestamp,
    TimestampTz,
}

impl Reading {
    /// The reading for a type; `None` where it has no agreed text form.
    pub fn of(info: &PgTypeInfo) -> Option<Self> {
        match info.kind() {
            PgTypeKind::Enum(_) => return Some(Self::Text),
            PgTypeKind::Domain(inner) => return Self::of(inner),
            _ => {}
        }
        Some(match info.name() {
            "BOOL" => Self::Boolean,
            "INT2" => Self::Int2,
            "INT4" => Self::Int4,
            "INT8" => Self::Int8,
            "OID" => Self::Oid,
            "FLOAT4" => Self::Float4,
            "FLOAT8" => Self::Float8,
            "NUMERIC" => Self::Numeric,
            "TEXT" | "VARCHAR" | "CHAR" | "NAME" | "\"CHAR\"" | "UNKNOWN" | "citext" | "CITEXT" => Self::Text,
            "BYTEA" => Self::Bytes,
            "JSON" => Self::Json,
            "JSONB" => Self::Jsonb,
            "UUID" => Self::Uuid,
            "DATE" => Self::Date,
            "TIME" => Self::Time,
            "TIMETZ" => Self::TimeTz,
            "TIMESTAMP" => Self::Timestamp,
            "TIMESTAMPTZ" => Self::TimestampTz,
            _ => return None,
        })
    }

    /// The word for it in the contract with plugins.
    pub fn word(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Int2 | Self::Int4 | Self::Int8 | Self::Oid => "integer",
            Self::Float4 | Self::Float8 => "float",
            Self::Numeric | Self::Text | Self::Uuid | Self::Date | Self::Time | Self::TimeTz => "text",
            Self::Bytes => "bytes",
            Self::Json | Self::Jsonb => "json",
            Self::Timestamp | Self::TimestampTz => "timestamp",
        }
    }

    /// Reads one value. The error says why, and never what the value was.
    pub fn read(self, raw: PgValueRef<'_>) -> Result<Value, String> {
        if raw.is_null() {
            return Ok(Value::Null);
        }
        match self {
            Self::Boolean => decode::<bool>(raw).map(Value::Boolean),
            Self::Int2 => decode::<i16>(raw).map(|number| Value::Integer(number.into())),
            Self::Int4 => decode::<i32>(raw).map(|number| Value::Integer(number.into())),
            Self::Int8 => decode::<i64>(raw).map(Value::Integer),
            Self::Oid => decode::<Oid>(raw).map(|oid| Value::Integer(oid.0.into())),
            Self::Float4 => decode::<f32>(raw).map(|number| Value::Float(number.into())),
            Self::Float8 => decode::<f64>(raw).map(Value::Float),
            Self::Numeric => numeric(raw),
            Self::Text | Self::Json => text(raw.as_bytes().map_err(|error| error.to_string())?),
            Self::Jsonb => jsonb(&raw),
            Self::Bytes => decode::<Vec<u8>>(raw).map(Value::Bytes),
            Self::Uuid => decode::<uuid::Uuid>(raw).map(|uuid| Value::Text(uuid.to_string())),
            Self::Date => decode::<i32>(raw)
                .and_then(|days| moment(Duration::days(days.into())))
                .map(|at| Value::Text(at.date().to_string())),
            Self::Time => decode::<i64>(raw).and_then(clock).map(Value::Text),
            Self::TimeTz => clock_with_offset(raw.as_bytes().map_err(|error| error.to_string())?).map(Value::Text),
            Self::Timestamp => instant(raw).and_then(|at| written(at.format(TIMESTAMP))).map(Value::Text),
            Self::TimestampTz => instant(raw).and_then(|at| written(at.assume_utc().format(&Rfc3339))).map(Value::Text),
        }
    }
}

const TIME: &[time::format_description::BorrowedFormatItem<'_>] =
    time::macros::format_description!("[hour]:[minute]:[second].[subsecond digits:6]");
/// RFC 3339 without an offset: the database has none for it either.
const TIMESTAMP: &[time::format_description::BorrowedFormatItem<'_>] =
    time::macros::format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]");

fn decode<'r, T: Decode<'r, Postgres>>(raw: PgValueRef<'r>) -> Result<T, String> {
    T::decode(raw).map_err(|error| error.to_string())
}

fn written(result: Result<String, time::error::Format>) -> Result<String, String> {
    result.map_err(|error| error.to_string())
}

/// Where PostgreSQL counts its dates and times from.
const EPOCH: PrimitiveDateTime = datetime!(2000-01-01 0:00);

/// The library adds without looking and panics at `infinity`, which PostgreSQL sends as the largest number.
fn moment(since_epoch: Duration) -> Result<PrimitiveDateTime, String> {
    let at = EPOCH.checked_add(since_epoch).filter(|at| (0..=9999).contains(&at.year()));
    at.ok_or_else(|| {
        "infinity and dates outside of the years 0 to 9999 have no form that partners agree on; cast the column to text in the query"
            .to_owned()
    })
}

fn instant(raw: PgValueRef<'_>) -> Result<PrimitiveDateTime, String> {
    decode::<i64>(raw).and_then(|microseconds| moment(Duration::microseconds(microseconds)))
}

/// A time of day. PostgreSQL has a 24:00:00, which is not the midnight before.
fn clock(microseconds: i64) -> Result<String, String> {
    const DAY: i64 = 86_400_000_000;
    match microseconds {
        DAY => Ok("24:00:00.000000".to_owned()),
        0..DAY => written((Time::MIDNIGHT + Duration::microseconds(microseconds)).format(TIME)),
        _ => Err("it is no time of a day".to_owned()),
    }
}

/// Eight bytes of time, four of seconds west of Greenwich.
fn clock_with_offset(bytes: &[u8]) -> Result<String, String> {
    let Some((time, zone)) = bytes.split_first_chunk::<8>() else {
        return Err("its form is newer than this version knows".to_owned());
    };
    let zone: [u8; 4] = zone.try_into().map_err(|_| "its form is newer than this version knows".to_owned())?;
    let offset = UtcOffset::from_whole_seconds(-i32::from_be_bytes(zone)).map_err(|error| error.to_string())?;
    Ok(format!("{}{offset}", clock(i64::from_be_bytes(*time))?))
}

/// Text must be UTF-8. A database with the encoding `SQL_ASCII` checks nothing and may hold anything.
fn text(bytes: &[u8]) -> Result<Value, String> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Value::Text(text.to_owned())),
        Err(error) => Err(format!(
            "it is not UTF-8 from byte {} on; the database probably has the encoding SQL_ASCII, so convert the column in the \
             query, for example convert_from(column::bytea, 'LATIN1')",
            error.valid_up_to() + 1
        )),
    }
}

fn jsonb(raw: &PgValueRef<'_>) -> Result<Value, String> {
    let bytes = raw.as_bytes().map_err(|error| error.to_string())?;
    match (raw.format(), bytes.split_first()) {
        // The binary form is the text behind one byte, the format's version.
        (PgValueFormat::Binary, Some((1, json))) => text(json),
        (PgValueFormat::Binary, _) => Err("its jsonb format is newer than this version knows".to_owned()),
        (PgValueFormat::Text, _) => text(bytes),
    }
}

/// As the database prints it: a `numeric(10, 2)` of 12.5 is `12.50`. The library drops the scale, so it is read from the
/// value's own header (digits, weight, sign, scale; two bytes each).
fn numeric(raw: PgValueRef<'_>) -> Result<Value, String> {
    let scale = match (raw.format(), raw.as_bytes().map_err(|error| error.to_string())?) {
        (PgValueFormat::Binary, [_, _, _, _, _, _, high, low, ..]) => {
            Some(i64::from(u16::from_be_bytes([*high, *low])))
        }
        _ => None,
    };
    let number: BigDecimal =
        decode(raw).map_err(|why| format!("{why}; NaN and infinity have no exact form: cast the column to text"))?;
    let number = match scale {
        Some(scale) => number.with_scale(scale),
        None => number,
    };
    Ok(Value::Text(number.to_plain_string()))
}

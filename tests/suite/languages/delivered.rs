//! The whole way, from rows in PostgreSQL to a file on a server, with the options of the example bundle `northwind`.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use sqlx::AssertSqlSafe;
use waybill::job::status::Status;
use waybill::remote::simulated::Behaviour;
use waybill::store::NewJob;
use waybill_tests::house::{PlannedQuery, TENANT};
use waybill_tests::{Database, House, Plan, Reach, SftpServer};

use super::{LANGUAGES, Language};

/// The example bundle's options, over a query of the test's own and two names of columns of our own.
const DESTINATION_LINES: &str = "settings = { name = 'inbox/contacts-{date}-{key}.csv', query = 'rows', encoding = 'utf-8', \
    line_ending = 'lf', delimiter = ',', quote = 'necessary', done_file = '{final.stem}.sha256', done_content = 'sha256' }\n";

const MANIFEST: &str = "[names]\nfinal = 'inbox/*-{key}.csv'\ntemporary = 'inbox/.{attempt}.part'\n\
    [contract]\npublishes_whole = true\none_name_space = true\nmay_remove_temporaries = true\nrename_one_step = true\n\
    [[contract.auxiliary]]\nname = '{final.stem}.sha256'\ntrigger = true\n";

/// Everything that a column can hold and a CSV file, a number's text or an encoding can get wrong.
const AWKWARD: [&str; 9] = [
    "('plain', 'Ann', 1, 1.5, 2.50, true, '\\x00', '2026-03-02T08:15:00Z', '{\"a\": 1}')",
    "('delimiters and quotes', 'Müller, \"Ute\"; \\tab', -1, 0.1, -0.001, false, '\\x00abff', '1999-12-31T23:59:59.999999Z', '[\"x, y\"]')",
    "('line ends', E'two\\r\\nlines\\nand\\rmore', 0, 1e21, 12345678901234567890.123456789, NULL, '\\x', '0001-01-01T00:00:00Z', 'null')",
    "('nothing', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "('empty and blank', '', 9223372036854775807, 1e-7, 0, true, '\\x22', '2026-03-02T08:15:00+14:00', '\"\"')",
    "('beyond ASCII', 'é ß 日本語 \u{1f600} e\u{301} \u{202e}x', -9223372036854775808, 'NaN', 7, false, '\\xc3a9', '2026-10-25T02:30:00+02:00', '{\"ключ\": \"й\"}')",
    "('floats', ' blanks stay ', 9007199254740993, '-Infinity', 1e20, true, '\\x0d0a', '2026-03-02T08:15:00.5Z', '1e3')",
    "('more floats', E'\\u00a0\\u2028\\ufeff', 42, '-0'::float8, 0.10, true, '\\x2c', '2026-03-02T08:15:00.123Z', 'true')",
    "('last floats', '=1+1', 7, 5e-324, 1, false, '\\xff', '2026-03-02T08:15:00Z', '{}')",
];

/// The tenant's data, in a database beside the house's. The scope's `kind` says how much of it is exported.
async fn data() -> anyhow::Result<(Database, PlannedQuery)> {
    let database = Database::fresh().await?;
    let admin = database.admin().await?;
    for statement in [
        "CREATE TABLE awkward (tenant uuid NOT NULL, kind text NOT NULL, place serial, what text, name text, big bigint, \
         double double precision, exact numeric, flag boolean, octets bytea, at timestamptz, document jsonb)"
            .to_owned(),
        format!(
            "INSERT INTO awkward (tenant, kind, what, name, big, double, exact, flag, octets, at, document) \
             SELECT '{TENANT}', 'awkward', what, name, big, double, exact, flag, octets::bytea, at::timestamptz, document::jsonb \
             FROM (VALUES {}) AS rows (what, name, big, double, exact, flag, octets, at, document)",
            AWKWARD.join(", ")
        ),
        // More than two batches, and more than one chunk of output.
        format!(
            "INSERT INTO awkward (tenant, kind, what, name, big) SELECT '{TENANT}', 'many', 'row ' || n, repeat('ü', n % 200), n FROM generate_series(1, 1201) AS n"
        ),
    ] {
        sqlx::query(AssertSqlSafe(statement)).execute(&admin).await?;
    }
    let query = PlannedQuery {
        url: database.url(),
        sql: "select what, name, big, double, exact, flag, octets, at, document from awkward where tenant = :tenant::uuid and kind = :kind order by place",
    };
    Ok((database, query))
}

/// Every file that the partner finds, by its name, after one job for each kind of rows.
async fn delivered(language: Language, kinds: &[&str]) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let server = SftpServer::start(Behaviour::default()).await?;
    server.make_directory("/inbox")?;
    let (_database, query) = data().await?;
    let password = tempfile::tempdir()?;
    let plan = Plan {
        manifest: MANIFEST.to_owned(),
        destination: DESTINATION_LINES.to_owned(),
        builder: language.builder,
        plugin: language.destination,
        query: Some(query),
        ..Plan::default()
    };
    let house = House::before(&Reach::in_process(&server, password.path())?, plan).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    for kind in kinds {
        let scope = serde_json::json!({ "kind": kind });
        let id = house.create_job(NewJob { scope, delivery_key: (*kind).to_owned(), ..House::new_job() }).await?;
        let job = house.until_ended(id).await?;
        assert_eq!(job.status, Status::Completed, "{}, {kind}: {:?}", language.name, house.events(id).await?);
        // The day may change between two languages; the name must follow its own job's.
        let day = job.created_at.to_offset(time::UtcOffset::UTC).date();
        let digits = day.to_string().replace('-', "");
        let expected = job.expected.ok_or_else(|| anyhow::anyhow!("no expected file"))?;
        assert_eq!(expected.name, format!("inbox/contacts-{digits}-{kind}.csv"), "{}", language.name);
    }
    let mut files = BTreeMap::new();
    for name in server.names_in("/inbox") {
        let bytes = server.read(&format!("/inbox/{name}")).ok_or_else(|| anyhow::anyhow!("{name} is gone"))?;
        // Without the day.
        files.insert(name.rsplit_once('-').map_or(name.clone(), |(_, rest)| rest.to_owned()), bytes);
    }
    Ok(files)
}

#[tokio::test]
async fn plg_07_three_languages_deliver_the_same_rows_as_the_same_bytes_under_the_same_name() -> anyhow::Result<()> {
    let kinds = ["awkward", "many", "none"];
    let names: Vec<String> = kinds.iter().flat_map(|kind| [format!("{kind}.csv"), format!("{kind}.sha256")]).collect();
    let mut first = None;
    for language in LANGUAGES {
        let files = delivered(language, &kinds).await?;
        assert_eq!(files.keys().collect::<Vec<_>>(), names.iter().collect::<Vec<_>>(), "{}", language.name);
        assert_eq!(files["none.csv"], b"what,name,big,double,exact,flag,octets,at,document\n", "{}", language.name);
        assert!(files["many.csv"].len() > 2 * 65_536, "{}", language.name);
        for kind in kinds {
            // As `sha256sum` writes it: lower case, two blanks, the name without its folder.
            let sum = String::from_utf8_lossy(&files[&format!("{kind}.sha256")]);
            let digest = HEXLOWER.encode(&Sha256::digest(&files[&format!("{kind}.csv")]));
            assert!(sum.starts_with(&format!("{digest}  contacts-")), "{}, {kind}: {sum:?}", language.name);
            assert!(sum.ends_with(&format!("-{kind}.csv\n")) && sum.lines().count() == 1, "{}: {sum:?}", language.name);
        }
        let first = first.get_or_insert_with(|| files.clone());
        for (name, bytes) in &files {
            let (theirs, ours) = (String::from_utf8_lossy(bytes), String::from_utf8_lossy(&first[name]));
            assert_eq!(theirs, ours, "{}, {name}", language.name);
            assert_eq!(*bytes, first[name], "{}, {name}", language.name);
        }
    }
    // The first language is held to the truth, so that three equal mistakes are one.
    let awkward = String::from_utf8(first.unwrap_or_default().remove("awkward.csv").unwrap_or_default())?;
    for part in [
        "\"Müller, \"\"Ute\"\"; \\tab\",-1,0.1,-0.001,false,00abff,",
        "line ends,\"two\r\nlines\nand\rmore\",0,1000000000000000000000,12345678901234567890.123456789,,,",
        "nothing,,,,,,,,\n",
        "empty and blank,,9223372036854775807,0.0000001,0,true,22,2026-03-01T18:15:00Z,",
        "-9223372036854775808,NaN,7,false,c3a9,",
        ", blanks stay ,9007199254740993,-Infinity,100000000000000000000,",
        ",42,-0,0.10,true,2c,",
    ] {
        assert!(awkward.contains(part), "{part:?} is not in {awkward}");
    }
    Ok(())
}

use super::*;
use crate::remote::{DirectoryEndpoint, SecretRef};

const ONE: &str = "[[destination]]\n\
    id = '018f0000-0000-7000-8000-000000000001'\n\
    name = 'Acme production'\n\
    tenant = '018f0000-0000-7000-8000-0000000000aa'\n\
    host = 'sftp.acme.example'\n\
    user = 'us'\n\
    directory = 'in'\n\
    host_keys = ['SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA']\n\
    key_file = 'id'\n";
const QUERY: &str =
    "[destination.queries.contacts]\nsql = 'select 1 where t = :tenant::uuid'\nurl_env = 'CONTACTS_URL'\n";

fn read(text: &str) -> Result<Vec<Destination>, DocumentError> {
    let manifest = Manifest::parse(
        "partner = 'acme'\nrevision = 1\n[names]\nfinal = '{key}.csv'\n[options]\nseparator = ';'\nheader = 'yes'\n",
    )
    .unwrap();
    let shared = Shared {
        manifest: &manifest,
        builder: Sha256([1; 32]),
        destination: Sha256([2; 32]),
        directory: Path::new("/partners/acme"),
    };
    parse(text, &shared)
}

#[test]
fn a_destination_is_read_with_defaults_and_merged_settings() {
    let text = format!("{ONE}[destination.settings]\nheader = 'no'\n{QUERY}");
    let one = &read(&text).unwrap()[0];
    let Endpoint::Sftp(endpoint) = &one.endpoint else { panic!("{}", one.endpoint) };
    assert_eq!((endpoint.port, one.endpoint.to_string().as_str()), (22, "us@sftp.acme.example:22, in"));
    assert!(matches!(&endpoint.secret, SecretRef::KeyFile(path) if path == Path::new("/partners/acme/id")));
    assert_eq!(one.settings, [("header".to_owned(), "no".to_owned()), ("separator".to_owned(), ";".to_owned())]);
    assert_eq!(one.queries, ["contacts"]);
}

const OUTBOX: &str = "[[destination]]\n\
    id = '018f0000-0000-7000-8000-000000000001'\n\
    name = 'Acme share'\n\
    tenant = '018f0000-0000-7000-8000-0000000000aa'\n\
    path = '/srv/outbox'\n";

#[test]
fn a_directory_of_this_machine_is_a_destination_too() {
    let one = |text: &str| read(text).unwrap()[0].clone();
    let plain = one(OUTBOX);
    let path = PathBuf::from("/srv/outbox");
    assert_eq!(plain.endpoint, Endpoint::Directory(DirectoryEndpoint { path: path.clone(), marker: None }));
    let marked = one(&format!("{OUTBOX}marker = '.mounted'\n"));
    let marker = Some(".mounted".to_owned());
    assert_eq!(marked.endpoint, Endpoint::Directory(DirectoryEndpoint { path, marker }));
    let elsewhere = one(&OUTBOX.replace("outbox", "other"));
    assert_ne!(plain.digests.settings, marked.digests.settings);
    assert_ne!(plain.digests.settings, elsewhere.digests.settings);
    // Final names are told apart by the directory, not by its server.
    assert_eq!(plain.endpoint.server(), elsewhere.endpoint.server());
}

const BUCKET: &str = "[[destination]]\n\
    id = '018f0000-0000-7000-8000-000000000001'\n\
    name = 'Acme bucket'\n\
    tenant = '018f0000-0000-7000-8000-0000000000aa'\n\
    bucket = 'deliveries'\n\
    region = 'eu-central-1'\n\
    access_key_env = 'ACME_ACCESS_KEY'\n\
    secret_key_file = 'secret_key'\n\
    prefix = 'in/'\n";

#[test]
fn a_bucket_of_an_object_store_is_a_destination_too() {
    let one = |text: &str| read(text).unwrap()[0].clone();
    let amazons = one(BUCKET);
    let Endpoint::Objects(endpoint) = &amazons.endpoint else { panic!("{}", amazons.endpoint) };
    assert_eq!(endpoint.secret_key, SecretRef::StoreKeyFile(PathBuf::from("/partners/acme/secret_key")));
    assert_eq!(amazons.endpoint.to_string(), "https://s3.eu-central-1.amazonaws.com/deliveries/in");
    assert_eq!(amazons.endpoint.server(), "https://s3.eu-central-1.amazonaws.com/deliveries");
    let stored = BUCKET.replace("region = 'eu-central-1'", "store = 'https://Store.example:443/'");
    assert_eq!(one(&stored).endpoint.server(), "https://store.example/deliveries");
    // Neither key is in the digest, nor who vouches for the store; everything else is.
    let rotated = BUCKET.replace("'secret_key'", "'other'").replace("ACME_ACCESS_KEY", "OTHER");
    let vouched = one(&format!("{rotated}ca_file = 'house.pem'\n"));
    assert_eq!(vouched.digests.settings, amazons.digests.settings);
    let Endpoint::Objects(endpoint) = &vouched.endpoint else { panic!("{}", vouched.endpoint) };
    assert_eq!(endpoint.ca_file.as_deref(), Some(Path::new("/partners/acme/house.pem")));
    for changed in [
        stored,
        BUCKET.replace("'deliveries'", "'other'"),
        BUCKET.replace("eu-central-1", "eu-west-1"),
        BUCKET.replace("'in/'", "'out/'"),
    ] {
        assert_ne!(one(&changed).digests.settings, amazons.digests.settings, "{changed}");
    }
}

#[test]
fn the_settings_digest_covers_what_matters_and_no_secret() {
    let digest = |text: &str| read(text).unwrap()[0].digests.settings.clone();
    let base = digest(ONE);
    assert_eq!(base, digest(&ONE.replace("key_file = 'id'", "password_env = 'ACME'")));
    for changed in [
        ONE.replace("'in'", "'out'"),
        ONE.replace("AAAA", "BBBB"),
        format!("{ONE}[destination.settings]\nheader = 'no'\n"),
        format!("{ONE}{QUERY}"),
    ] {
        assert_ne!(base, digest(&changed), "{changed}");
    }
}

#[test]
fn each_fault_is_told_with_its_line_and_fix_and_without_the_value() {
    let second = ONE.replace("Acme production", "Acme test");
    let keys = |list: &str| ONE.replace("['SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA']", list);
    let cases: &[(String, usize, &str)] = &[
        (String::new(), 1, "`destination` is missing"),
        (format!("{ONE}password = 'hunter2'\n"), 10, "password_file"),
        (format!("{ONE}key = 'hunter2'\n"), 10, "key_file"),
        (ONE.replace("key_file = 'id'\n", ""), 6, "one of key_file"),
        (format!("{ONE}password_env = 'hunter2'\n"), 6, "keep one"),
        (keys("[]"), 8, "ssh-keyscan"),
        (ONE.replace("'Acme production'", "\"hunter2\\nready\""), 3, "one line"),
        (ONE.replace("'Acme production'", "\"hunter2\\u0000\""), 3, "U+0000"),
        (format!("{BUCKET}store = 'http://[::1]'\nca_file = 'hunter2'\n"), 11, "reached by `https://`"),
        (
            keys("['SHA256:replace this with hunter2']"),
            8,
            "placeholder of destinations.example.toml; take it with `ssh-keyscan",
        ),
        (keys("['MD5:hunter2']"), 8, "SHA256"),
        (keys("[\n'SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',\n'hunter2']"), 10, "host key 2 is neither"),
        (format!("{ONE}port = 'hunter2'\n"), 10, "`destination.port` is a whole number"),
        (format!("{ONE}usr = 'x'\n"), 10, "did you mean `user`"),
        (format!("{ONE}{second}"), 11, "give each its own"),
        (format!("{ONE}{}", QUERY.replace(" where t = :tenant::uuid", "")), 11, ":tenant"),
        (
            format!("{ONE}{}", QUERY.replace("url_env = 'CONTACTS_URL'", "url = 'postgres://u:hunter2@db/x'")),
            10,
            "url_file",
        ),
        (format!("{ONE}{}", QUERY.replace("url_env = 'CONTACTS_URL'\n", "")), 10, "has no database"),
        (ONE.replace("-0000000000aa", ""), 4, "`destination.tenant` is a UUID"),
        (format!("{ONE}[destination.settings]\nheader = true\n"), 11, "in quotes"),
        (format!("{ONE}[[destination.rules]]\n"), 10, "write `[destination.rules]`"),
        (ONE.replace("host = 'sftp.acme.example'\n", ""), 1, "`host` is missing"),
        (ONE.replace("user = 'us'\n", ""), 1, "`user` is missing"),
        (format!("{ONE}path = '/hunter2'\n"), 10, "keep `host`"),
        (format!("{ONE}marker = 'hunter2'\n"), 10, "take it out"),
        (OUTBOX.replace("/srv/outbox", "hunter2"), 5, "absolute"),
        (format!("{OUTBOX}user = 'hunter2'\n"), 6, "`user` is for an SFTP server"),
        (format!("{OUTBOX}marker = '../hunter2'\n"), 6, "name of a file"),
        (format!("{OUTBOX}region = 'hunter2'\n"), 6, "`region` is for an object store"),
        (format!("{BUCKET}secret_key = 'hunter2'\n"), 10, "secret_key_file"),
        (format!("{BUCKET}host = 'hunter2'\n"), 5, "keep `bucket`"),
        (format!("{BUCKET}port = 22\n"), 10, "`port` is for an SFTP server"),
        (format!("{BUCKET}access_key_file = 'hunter2'\n"), 5, "keep one of access_key_file"),
        (BUCKET.replace("secret_key_file = 'secret_key'\n", ""), 5, "secret_key_file or secret_key_env"),
        (BUCKET.replace("region = 'eu-central-1'\n", ""), 5, "`region` is missing"),
        (BUCKET.replace("'eu-central-1'", "'hunter2/'"), 6, "region's name"),
        (BUCKET.replace("'deliveries'", "'hunter2/in'"), 5, "bucket's name alone"),
        (format!("{BUCKET}store = 'http://hunter2'\n"), 10, "this machine only"),
        (format!("{BUCKET}store = 'https://u:hunter2@store.example'\n"), 10, "nothing after it"),
        (BUCKET.replace("'in/'", "'/hunter2'"), 9, "folder within the bucket"),
        (format!("{BUCKET}store = 'http://[::1]'\nca_file = 'hunter2'\n"), 11, "reached by `https://`"),
    ];
    for (text, line, part) in cases {
        let error = read(text).unwrap_err();
        assert!(error.line == *line && error.what.contains(part), "{error}\nfor\n{text}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[test]
fn an_example_that_was_copied_without_change_is_told_as_such() {
    let template = include_str!("../../cli/plugin/template/destinations.example.toml")
        .replace("@ID@", "018f0000-0000-7000-8000-000000000001")
        .replace("@PARTNER@", "acme");
    let error = read(&template).unwrap_err();
    assert!(error.line == 13 && error.what.contains("placeholder") && error.what.contains("ssh-keyscan"), "{error}");
}

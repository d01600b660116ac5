//! `waybill partner check`: what a server hides, replaces or lies about against what a contract counts on, and each query before
//! its database.

use waybill_tests::house::{DESTINATION, TENANT};
use waybill_tests::sftp_server::{Action, Behaviour, Fault, HardLink, Listing, RenameOver, When};
use waybill_tests::{House, Plan, Reach, SftpServer, Sshd};

use crate::partners::{against, before, check, enable, waybill};

#[tokio::test(flavor = "multi_thread")]
async fn del_05_a_server_that_replaces_or_lies_about_links_is_found_out_and_not_enabled() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let replaces = Behaviour {
        rename_over: RenameOver::Replaces,
        hard_link: HardLink::NotOffered,
        posix_rename: false,
        ..Behaviour::default()
    };
    let server = SftpServer::start(replaces.clone()).await?;
    let house = before(&server, directory.path(), "publishes_whole = true").await?;
    check(&house).await?.says(
        4,
        &[
            "Contradicts",
            "CONTRADICTS  publish:",
            "hard links are not offered, and RENAME replaces an existing file",
            "exclusive_create",
        ],
    );
    enable(&house)
        .await?
        .says(4, &["Refused", "the contract says more than the server was shown to do", "RENAME replaces"]);

    server.set_behaviour(Behaviour { hard_link: HardLink::Lies, ..replaces });
    let lies = waybill(&house, &["partner", "check", &DESTINATION.to_string(), "--json"]).await?;
    assert_eq!((lies.code, against(&lies.json()?)), (4, vec!["publish".to_owned()]), "{}", lies.said);
    lies.says(4, &["a hard link is answered yes and not made", "nothing is ever delivered by one here"]);
    enable(&house).await?.says(4, &["answered yes and not made"]);

    server.set_behaviour(Behaviour { hard_link: HardLink::Lies, ..Behaviour::default() });
    check(&house).await?.says(0, &["Agrees", "by RENAME, which refused an existing name", "makes none"]);
    enable(&house).await?.says(0, &["Enabled"]);
    assert_eq!(server.names_in("/"), [""; 0], "scratch files are left");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn plg_01_an_attempts_check_looks_at_all_that_a_persons_does() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let server = SftpServer::start(Behaviour::default()).await?;
    let house = before(&server, directory.path(), "").await?;
    check(&house).await?.says(0, &["Agrees"]);
    // Another server of the same address, which publishes as before and lets nothing be read.
    let mut closed = Behaviour::default();
    closed.extensions.insert("new@example.com".to_owned(), "1".to_owned());
    server.set_behaviour(closed);
    server.always(When::Before, Action::Read, Fault::refuse(3, "reading is forbidden here"));
    let (worker, dispatcher) = (house.worker_named("the-worker").await?, house.dispatcher().await?);
    house.create().await?;
    let why = house.until_attention().await?;
    assert!(why.contains("reading back: what we wrote cannot be read back"), "{why}");
    assert!(worker.stop().await? && dispatcher.stop().await?, "something was under way");
    waybill(&house, &["partner", "list"])
        .await?
        .says(0, &["needs attention", "contradicts in 1 (", ", by the-worker)"]);
    enable(&house).await?.says(4, &["Refused", "CONTRADICTS  reading back"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn del_05_what_a_server_hides_or_does_not_offer_contradicts_a_contract_that_counts_on_it() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let server = SftpServer::start(Behaviour { posix_rename: false, ..Behaviour::default() }).await?;
    let house = before(&server, directory.path(), "names_reused = true\noverwrites_last = 'mail of 3 May'").await?;
    check(&house).await?.says(4, &["CONTRADICTS  overwrites_last", "mail of 3 May", "posix-rename@openssh.com"]);
    server.set_behaviour(Behaviour { listing: Listing::Forbidden, ..Behaviour::default() });
    let hidden = waybill(&house, &["partner", "check", "acme", "--json"]).await?;
    let words = against(&hidden.json()?);
    assert!(hidden.code == 4 && words.contains(&"looking".to_owned()), "{}", hidden.said);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn del_05_what_a_contract_counts_on_and_a_server_does_not_tell_enables_nothing() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let server = SftpServer::start(Behaviour { times: false, ..Behaviour::default() }).await?;
    let answered = "[contract.acknowledgment]\nname = 'answers/{key}.txt'\naccept = 'ok'\nperiod_seconds = 60";
    let words = "name_and_size_identify = true\nnames_reused = true\ntime_proves_overwrite = true";
    let house = before(&server, directory.path(), &format!("{words}\n{answered}")).await?;
    let found = async || -> anyhow::Result<Vec<String>> {
        let checked = waybill(&house, &["partner", "check", "acme", "--json"]).await?;
        let found = against(&checked.json()?);
        assert_eq!(checked.code, if found.is_empty() { 0 } else { 4 }, "{}", checked.said);
        Ok(found)
    };
    assert_eq!(found().await?, ["acknowledgment", "time_proves_overwrite"]);
    enable(&house).await?.says(
        4,
        &["Refused", "the folder of answers/{key}.txt cannot be listed", "does not tell when a file was changed"],
    );
    // An attempt holds back too, and asks for a person.
    let (worker, dispatcher) = (house.worker().await?, house.dispatcher().await?);
    house.create().await?;
    let why = house.until_attention().await?;
    assert!(why.contains("acknowledgment: ") && why.contains("time_proves_overwrite: "), "{why}");
    assert!(worker.stop().await? && dispatcher.stop().await?, "something was under way");

    server.make_directory("answers")?;
    assert_eq!(found().await?, ["time_proves_overwrite"]);
    server.set_behaviour(Behaviour { sizes: false, ..Behaviour::default() });
    let sizes = found().await?;
    assert!(sizes.contains(&"name_and_size_identify".to_owned()), "{sizes:?}");
    enable(&house).await?.says(4, &["Refused", "does not tell the size of a file that we wrote"]);
    server.set_behaviour(Behaviour::default());
    assert_eq!(found().await?, [""; 0]);
    enable(&house).await?.says(0, &["Enabled"]);
    assert_eq!(server.names_in("/"), ["answers"], "scratch files are left");
    Ok(())
}

#[tokio::test]
async fn plg_01_each_query_is_prepared_by_its_database_and_none_is_run() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, Plan::default()).await?;
    let entry = house.partners().join("acme/destinations.toml");
    let first = std::fs::read_to_string(&entry)?;
    let url = house.database.url();
    let query = |name: &str, database: &str, sql: &str| {
        format!("[destination.queries.{name}]\n{database}\nsql = '''{sql}'''\n")
    };
    let here = format!("url = '{url}'");
    let not_run = query("not_run", &here, "select 1 / 0 as never from crm.contacts where tenant_id = :tenant::uuid");
    std::fs::write(&entry, format!("{first}{not_run}"))?;
    check(&house).await?.says(
        0,
        &[
            "Agrees: nothing",
            "agrees       query not_run: its database takes it, and would answer with never integer",
            "agrees       query rows: its database takes it, and would answer with id integer, name text, email text",
        ],
    );
    let broken = [
        query("typo", &here, "select id from crm.contacts\nwhere tenant_id = :tenant::uuid and nam = :since"),
        query("unset", "url_env = 'WAYBILL_TEST_NOT_SET'", "select :tenant::uuid"),
        query("away", "url = 'postgres://nobody@127.0.0.1:1/none'", "select :tenant::uuid"),
        query("money", &here, "select 1::money as price where :tenant::uuid is not null"),
    ];
    std::fs::write(&entry, format!("{first}{}", broken.concat()))?;
    let checked = check(&house).await?;
    checked.says(
        4,
        &[
            "QueryRefused: 2 of its queries cannot be run",
            "CONTRADICTS  query typo: ",
            "column \"nam\" does not exist, in line 2 at \"nam = $2\"",
            "correct the query's `sql`",
            "not shown    query unset: ",
            "the environment variable WAYBILL_TEST_NOT_SET is not set",
            "set it where this command and the host run",
            "not shown    query away: ",
            "QueryNotAsked: the database of query away and of query unset of acme could not be asked",
            "127.0.0.1:1/none cannot be reached",
            "CONTRADICTS  query money: ",
            "cast the column to text",
            "agrees       query rows",
            "Nothing that was seen of the server contradicts the contract.",
        ],
    );
    let away = query("away", "url = 'postgres://nobody@127.0.0.1:1/none'", "select :tenant::uuid");
    std::fs::write(&entry, format!("{first}{away}"))?;
    let checked = check(&house).await?;
    let again = format!("then check again: waybill partner check {DESTINATION} --as YOU");
    checked.says(5, &["the database of query away of acme could not be asked", "back to the queue", &again]);
    assert!(!checked.said.contains("Agrees:") && !checked.said.contains("ends before"), "{}", checked.said);
    std::fs::write(&entry, first.replace(":tenant::uuid", "id::text::uuid"))?;
    check(&house).await?.says(4, &["Refused", "acme", "a query without :tenant would read every tenant's rows"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn del_05_a_missing_folder_is_named_and_answers_in_a_folder_of_the_final_name_are_noted() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let server = SftpServer::start(Behaviour::default()).await?;
    let manifest = "[names]\nfinal = 'in/{key}.csv'\ntemporary = 'in/.{attempt}.part'\n\
                    [contract.acknowledgment]\naccept_name = 'answers/{final}.ok'\nperiod_seconds = 60\n";
    let plan = Plan { manifest: manifest.to_owned(), ..Plan::default() };
    let house = House::before(&Reach::in_process(&server, directory.path())?, plan).await?;
    server.make_directory("answers")?;
    let missing = check(&house).await?;
    missing.says(4, &["NotPossible", "the folder \"in\" is not there in \"/\": have it created at the partner"]);
    server.make_directory("in")?;
    let note = "`accept_name`) lie in answers/in, because final names lie in in; for files in answers write \"answers/{final.name}.ok\"";
    // Where the answers will lie is what must be there.
    check(&house).await?.says(4, &["CONTRADICTS  acknowledgment: ", "(answers/in: ", note]);
    server.make_directory("answers/in")?;
    check(&house).await?.says(0, &["Agrees", "noted        acknowledgment: ", note]);
    waybill(&house, &["partner", "show", "acme"]).await?.says(0, &["notes", note]);

    // What a check found mended does not release what deliveries found.
    sqlx::query(
        "UPDATE destinations SET pause_failures = 3, paused_at = clock_timestamp(), paused_until = clock_timestamp() + interval '1 hour'",
    )
    .execute(&house.admin)
    .await?;
    let command = format!("waybill destination resume {DESTINATION} --tenant {TENANT} --as YOU");
    check(&house).await?.says(0, &["Agrees", "It is still paused: one job tries it again by itself in 3", &command]);
    let json = waybill(&house, &["partner", "check", "acme", "--json"]).await?.json()?;
    assert_eq!(json["next"], command.as_str());
    Ok(())
}

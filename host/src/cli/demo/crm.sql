-- The customer database of the demo: two tenants' contacts, and what they consented to.
CREATE TABLE contacts (
    tenant_id     uuid NOT NULL,
    number        integer NOT NULL,
    first_name    text NOT NULL,
    last_name     text NOT NULL,
    company       text,
    email         text NOT NULL,
    phone         text,
    street        text NOT NULL,
    postal_code   text NOT NULL,
    city          text NOT NULL,
    country       text NOT NULL,
    language      text NOT NULL,
    newsletter    boolean NOT NULL,
    credit_limit  numeric(10, 2),
    last_contact  date,
    changed_at    timestamptz NOT NULL,
    notes         text,
    PRIMARY KEY (tenant_id, number)
);
CREATE INDEX ix_contacts_country ON contacts (tenant_id, country);
CREATE TABLE consents (
    tenant_id  uuid NOT NULL,
    number     integer NOT NULL,
    channel    text NOT NULL,
    given_on   date NOT NULL,
    PRIMARY KEY (tenant_id, number, channel)
);
-- The login that the destinations' queries use: it reads these two tables and nothing else.
CREATE ROLE crm_reader LOGIN;
GRANT SELECT ON contacts, consents TO crm_reader;

-- What Meridian must get, made by PostgreSQL alone: rows, bytes and SHA-256 of the whole file.
WITH rows AS (
    SELECT number, ARRAY[number::text, last_name, first_name, company, email, phone, street, postal_code, city, country,
               CASE WHEN newsletter THEN 'J' ELSE 'N' END, credit_limit::text, last_contact::text, notes] AS fields
    FROM contacts WHERE tenant_id = :'tenant' AND (:'country' = 'all' OR country = :'country')),
lines AS (
    SELECT number, (SELECT string_agg('"' || replace(coalesce(field, ''), '"', '""') || '"', ';' ORDER BY place)
                    FROM unnest(fields) WITH ORDINALITY AS one (field, place)) || E'\r\n' AS line
    FROM rows),
file AS (
    SELECT count(*) AS rows,
           convert_to('"Kundennummer";"Name";"Vorname";"Firma";"E-Mail";"Telefon";"Straße";"PLZ";"Ort";"Land";'
                      || E'"Rundbrief";"Kreditrahmen";"Letzter Kontakt";"Bemerkung"\r\n'
                      || coalesce(string_agg(line, '' ORDER BY number), ''), 'WIN1252') AS bytes
    FROM lines)
SELECT rows, length(bytes), encode(sha256(bytes), 'hex') FROM file;

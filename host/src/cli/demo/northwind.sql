-- What Northwind must get, made by PostgreSQL alone: rows, bytes and SHA-256 of the whole file.
WITH rows AS (
    SELECT number, ARRAY[number::text, first_name, last_name, company, email, phone, street, postal_code, city, country,
               language, newsletter::text, credit_limit::text, last_contact::text,
               to_char(changed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), notes] AS fields
    FROM contacts WHERE tenant_id = :'tenant' AND (:'country' = 'all' OR country = :'country')),
lines AS (
    SELECT number, (SELECT string_agg(CASE WHEN field ~ E'[",\r\n]' THEN '"' || replace(field, '"', '""') || '"'
                                           ELSE coalesce(field, '') END, ',' ORDER BY place)
                    FROM unnest(fields) WITH ORDINALITY AS one (field, place)) || E'\n' AS line
    FROM rows),
file AS (
    SELECT count(*) AS rows,
           convert_to('number,first_name,last_name,company,email,phone,street,postal_code,city,country,language,'
                      || E'newsletter,credit_limit,last_contact,changed_at,notes\n'
                      || coalesce(string_agg(line, '' ORDER BY number), ''), 'UTF8') AS bytes
    FROM lines)
SELECT rows, length(bytes), encode(sha256(bytes), 'hex') FROM file;

-- Rights after all migrations; executed after each upgrade.

revoke all on schema ralphdeck from public;
revoke all on all tables in schema ralphdeck from public, ralphdeck_member;
revoke all on all functions in schema ralphdeck from public, ralphdeck_member;
grant usage on schema ralphdeck to ralphdeck_member;

do $$
declare
    name text;
    is_table boolean;
begin
    -- Functions and types whose name starts with an underscore are internal.
    for name in select p.oid::regprocedure::text from pg_proc p
                where p.pronamespace = 'ralphdeck'::regnamespace and p.proname not like '\_%' loop
        execute format('grant execute on function %s to ralphdeck_member', name);
    end loop;
    for name in select format('%I.%I', 'ralphdeck', t.typname) from pg_type t
                where t.typnamespace = 'ralphdeck'::regnamespace and t.typtype in ('e', 'c')
                and (t.typtype = 'e' or exists (
                    select from pg_class c where c.oid = t.typrelid and c.relkind = 'c')) loop
        execute format('revoke all on type %s from public', name);
        execute format('grant usage on type %s to ralphdeck_member', name);
    end loop;
    for name, is_table in
            select c.relname, exists (select from pg_attribute a where a.attrelid = c.oid
                                      and a.attname = 'space_id' and not a.attisdropped)
            from pg_class c
            where c.relnamespace = 'ralphdeck'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition loop
        execute format('grant select on ralphdeck.%I to ralphdeck_member', name);
        if is_table then
            execute format('alter table ralphdeck.%I enable row level security', name);
            execute format('drop policy if exists members on ralphdeck.%I', name);
            execute format('create policy members on ralphdeck.%I for select to ralphdeck_member '
                'using (space_id in (select ralphdeck.visible_spaces()))', name);
        end if;
    end loop;
end $$;

-- formulas -> macros: each formula of the SQL stages, once

-- Wilson score interval of a proportion k/n at z, lower and upper bound (Wilson 1927); null for n = 0
create or replace macro wilson_lower(k, n, z) as
    case when n > 0 then
        ((k / n) + z * z / (2 * n) - z * sqrt((k / n) * (1 - k / n) / n + z * z / (4 * n * n))) / (1 + z * z / n)
    end;

create or replace macro wilson_upper(k, n, z) as
    case when n > 0 then
        ((k / n) + z * z / (2 * n) + z * sqrt((k / n) * (1 - k / n) / n + z * z / (4 * n * n))) / (1 + z * z / n)
    end;

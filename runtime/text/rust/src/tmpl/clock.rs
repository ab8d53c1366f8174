//! strftime in UTC.

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

struct Moment {
    year: i64,
    month: i64,
    day: i64,
    day_of_year: i64,
    weekday: usize,
    second_of_day: i64,
}

/// Gregorian date of a day count since 1970-01-01, by eras of 400 years that begin in March.
fn moment(seconds: i64) -> Moment {
    let days = seconds.div_euclid(86_400);
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let from_march = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * from_march + 2) / 153;
    let day = from_march - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334][month as usize - 1];
    Moment {
        year,
        month,
        day,
        day_of_year: before + day + i64::from(leap && month > 2),
        weekday: (days + 4).rem_euclid(7) as usize,
        second_of_day: seconds.rem_euclid(86_400),
    }
}

/// The codes that chat templates use; another one is an error that names it.
pub fn strftime(seconds: i64, format: &str) -> Result<String, String> {
    let now = moment(seconds);
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut code = chars.next();
        let bare = code == Some('-');
        if bare {
            code = chars.next();
        }
        let code = code.ok_or("the format ends with %")?;
        out.push_str(&field(&now, code, bare).ok_or_else(|| format!("%{code} is not supported"))?);
    }
    Ok(out)
}

fn field(now: &Moment, code: char, bare: bool) -> Option<String> {
    let number = |value: i64, width: usize| {
        if bare {
            value.to_string()
        } else {
            format!("{value:0width$}")
        }
    };
    let (hour, minute, second) =
        (now.second_of_day / 3600, now.second_of_day / 60 % 60, now.second_of_day % 60);
    Some(match code {
        'Y' => now.year.to_string(),
        'y' => number(now.year.rem_euclid(100), 2),
        'm' => number(now.month, 2),
        'd' => number(now.day, 2),
        'e' => format!("{:>2}", now.day),
        'j' => number(now.day_of_year, 3),
        'H' => number(hour, 2),
        'I' => number((hour + 11) % 12 + 1, 2),
        'M' => number(minute, 2),
        'S' => number(second, 2),
        'p' => if hour < 12 { "AM" } else { "PM" }.to_string(),
        'B' => MONTHS[now.month as usize - 1].to_string(),
        'b' | 'h' => MONTHS[now.month as usize - 1][..3].to_string(),
        'A' => DAYS[now.weekday].to_string(),
        'a' => DAYS[now.weekday][..3].to_string(),
        'w' => now.weekday.to_string(),
        'u' => ((now.weekday + 6) % 7 + 1).to_string(),
        'F' => format!("{}-{:02}-{:02}", now.year, now.month, now.day),
        'T' => format!("{hour:02}:{minute:02}:{second:02}"),
        'z' | 'Z' => String::new(),
        '%' => "%".to_string(),
        _ => return None,
    })
}

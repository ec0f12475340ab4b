"""Countries by their English names: a place may lie in one, as Oslo does in Norway."""

from __future__ import annotations

_NAMES = """
Afghanistan, Albania, Algeria, Andorra, Angola, Argentina, Armenia, Australia, Austria, Azerbaijan,
Bahamas, Bahrain, Bangladesh, Barbados, Belarus, Belgium, Belize, Benin, Bhutan, Bolivia, Bosnia,
Botswana, Brazil, Brunei, Bulgaria, Burkina Faso, Burma, Burundi, Cambodia, Cameroon, Canada,
Cape Verde, Chad, Chile, China, Colombia, Comoros, Congo, Costa Rica, Croatia, Cuba, Cyprus,
Czechia, Czech Republic, Denmark, Djibouti, Dominica, Dominican Republic, East Timor, Ecuador,
Egypt, El Salvador, England, Eritrea, Estonia, Eswatini, Ethiopia, Fiji, Finland, France, Gabon,
Gambia, Georgia, Germany, Ghana, Great Britain, Greece, Greenland, Grenada, Guatemala, Guinea,
Guyana, Haiti, Holland, Honduras, Hungary, Iceland, India, Indonesia, Iran, Iraq, Ireland, Israel,
Italy, Ivory Coast, Jamaica, Japan, Jordan, Kazakhstan, Kenya, Kosovo, Kuwait, Kyrgyzstan, Laos,
Latvia, Lebanon, Lesotho, Liberia, Libya, Liechtenstein, Lithuania, Luxembourg, Madagascar, Malawi,
Malaysia, Maldives, Mali, Malta, Mauritania, Mauritius, Mexico, Moldova, Monaco, Mongolia,
Montenegro, Morocco, Mozambique, Myanmar, Namibia, Nepal, Netherlands, New Zealand, Nicaragua,
Niger, Nigeria, North Korea, North Macedonia, Northern Ireland, Norway, Oman, Pakistan, Palestine,
Panama, Papua New Guinea, Paraguay, Peru, Philippines, Poland, Portugal, Puerto Rico, Qatar,
Romania, Russia, Rwanda, Samoa, Saudi Arabia, Scotland, Senegal, Serbia, Seychelles, Sierra Leone,
Singapore, Slovakia, Slovenia, Somalia, South Africa, South Korea, South Sudan, Spain, Sri Lanka,
Sudan, Suriname, Sweden, Switzerland, Syria, Taiwan, Tajikistan, Tanzania, Thailand, Togo, Tonga,
Trinidad, Tunisia, Turkey, Turkmenistan, Uganda, UK, Ukraine, United Arab Emirates, UAE,
United Kingdom, United States, Uruguay, US, USA, Uzbekistan, Vanuatu, Vatican City, Venezuela,
Vietnam, Wales, Yemen, Zambia, Zimbabwe
"""
_COUNTRIES = frozenset(" ".join(name.split()).casefold() for name in _NAMES.split(","))


def is_country(name: str) -> bool:
    """Whether a place goes by the name of a country, with an article or without."""
    return name.casefold().removeprefix("the ").strip() in _COUNTRIES

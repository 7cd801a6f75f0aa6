"""The words of the generated sentences, the commonest of each kind first."""

from __future__ import annotations

__all__ = [
    "FIRST_NAMES",
    "NAME_ENDS",
    "NAME_STARTS",
    "PLACES",
    "QUALITIES",
    "SUBJECTS",
    "TEMPLATES",
    "VERBS",
]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FIRST_NAMES = _words(
    """
    Anna Maria David Ben Sofia Omar Lena Ivan Mei Ravi Nina Hugo Clara Samir Eva Jonas Aisha Paul
    Yuki Marta Leo Fatima Tom Ines Karim Vera Luca Priya Oskar Dana Felix Amara Noah Elif Pedro Hana
    Viktor Zoe Tariq Alba Simon Greta Mateo Ruth Kofi Ida Milan Leila Arthur Nora Bruno Sana Emil
    Petra Diego Lin Kasper Irene Adel Judith Stefan Rosa Hamza Agnes Joon Tilda Marco Wanda Idris
    Helen Otto Farah Nils Carmen Piotr Esther Rafael Selma Goran Bettina Chidi Ursula Tomas Zainab
    Albert Mina Henrik Olga Sergio Thandi Walter Yara Ludwig Naomi Cyril Beatriz Dmitri Freya Ahmed
    Lucia
    """
)

NAME_STARTS = _words(
    """
    Al An Ar Bal Bar Ber Bor Bran Cal Car Cor Dal Dan Del Dor Ed El Er Fal Far Fen For Gal Gar Gor
    Hal Har Hol Ian Jan Jor Kal Kar Kel Kor Lan Lar Lin Lor Mal Mar Mel Mor Nal Nor Ol Or Pal Par
    Pel Por Ral Ran Ros Sal San Sel Sor Tal Tar Tor Ul Val Var Vor Wal Wen Wol Yar Zel
    """
)

NAME_ENDS = _words(
    """
    son sen man berg ton ley ford wick stein feld ski vic ova ez ini elli ard mann ström dal gaard
    bach hoff er ing wood field worth well den by more lund rup quist as os ides oglu yan dze enko
    uk ić ak ek ar an en in on
    """
)

PLACES = _words(
    """
    Berlin London Paris Lisbon Madrid Rome Vienna Athens Oslo Dublin Prague Warsaw Zurich Tokyo
    Delhi Cairo Nairobi Lagos Toronto Boston Chicago Seattle Austin Denver Lima Bogota Santiago
    Sydney Perth Seoul Osaka Hanoi Manila Jakarta Singapore Dubai Doha Tunis Accra Dakar Kampala
    Hamburg Munich Cologne Leipzig Lyon Nantes Lille Porto Braga Seville Malaga Turin Naples Bologna
    Genoa Graz Linz Basel Bern Geneva Ghent Antwerp Utrecht Delft Aarhus Odense Malmo Uppsala Bergen
    Tampere Turku Riga Vilnius Tallinn Gdansk Krakow Brno Zagreb Split Sofia Bucharest Izmir Ankara
    Tbilisi Yerevan Baku Tashkent Lahore Pune Chennai Kandy Kyoto Busan Cork Galway Leeds Bristol
    Cardiff Glasgow Dundee
    """
)

SUBJECTS = _words(
    """
    budget meeting release contract invoice report design server database kitchen garden bicycle
    train flight hotel dinner birthday doctor school piano backup password deployment migration
    interview salary holiday printer laptop camera router warehouse delivery supplier customer
    refund survey workshop newsletter website logo translation audit insurance mortgage heating roof
    window carpet boiler fence apple soup bread coffee tea recipe wedding concert museum library
    novel guitar choir marathon yoga swimming football chess vaccine allergy headache dentist
    glasses prescription passport visa luggage ferry bridge tunnel station harbour lighthouse
    mountain river forest beach storm snow drought harvest tractor orchard beehive horse puppy
    kitten parrot aquarium telescope satellite rocket battery turbine reactor sensor algorithm
    compiler parser scheduler queue cache index schema query dashboard pipeline cluster firewall
    certificate token webhook endpoint changelog roadmap milestone prototype patent trademark
    lawsuit verdict election parliament tariff pension scholarship thesis lecture exam laboratory
    microscope enzyme protein glacier volcano earthquake fossil manuscript sculpture fresco
    cathedral mosaic tapestry violin orchestra ballet sonata documentary screenplay podcast
    """
)

QUALITIES = _words(
    """
    new old small large final first second next late early quiet noisy cheap expensive broken spare
    weekly monthly annual local remote shared private public temporary permanent urgent optional
    missing hidden wooden metal plastic green blue red yellow white black warm cold fresh frozen
    heavy light narrow wide northern southern eastern western digital manual automatic experimental
    historic modern rural urban coastal internal external official unsigned encrypted distributed
    incremental seasonal handmade
    """
)

VERBS = _words(
    """
    finished started moved cancelled booked approved repaired ordered reviewed postponed painted
    sold bought tested cleaned measured described promised refused requested shipped replaced
    borrowed returned inspected photographed translated archived renewed delayed rejected signed
    designed assembled exported imported upgraded restarted duplicated renamed donated auctioned
    demolished restored calibrated encrypted catalogued negotiated sponsored televised
    """
)

TEMPLATES = (
    "{name} {verb} the {thing} in {place}.",
    "{name} said that the {thing} was {verb} before the {subject}.",
    "The {thing} costs {number} euros, and {name} {verb} it.",
    "We met {name} in {place} to talk about the {thing}.",
    "Ticket {identifier} is about the {thing}; {name} {verb} it.",
    "It was in {place} that {name} {verb} the {thing} and the {subject}.",
    "Please remember that {name} prefers the {thing} to the {subject}.",
    "The {subject} of {name} is kept under {identifier}.",
    "After {number} days the {thing} was {verb} by {name}.",
    "{name} asked whether the {thing} from {place} can be {verb}.",
    "I have {verb} the {subject}, but the {thing} is still with {name}.",
    "On the way to {place} {name} lost the {thing}.",
    "The meeting about the {thing} moved to room {number}, {name} will be there.",
    "{name} and {other} {verb} the {thing} together.",
    "{other} does not agree with {name} about the {thing} in {place}.",
    "For the {subject} we need {number} of the {thing}s, ask {name}.",
    "{name} wrote down {identifier} as the number of the {thing}.",
    "There is no {thing} in {place}, so {name} {verb} the {subject}.",
    "If the {thing} is {verb} again, call {name} in {place}.",
    "My notes say: {thing}, {place}, {number}, with {name}.",
)

/// Data of the shape of Northwind, the example database of a wholesaler, made from a seed.
///
/// The tables have its columns and about as many rows as the copies of it that are in use for benchmarks. The words are
/// made up.
struct NorthwindData {
    /// A table with its rows.
    struct Table {
        let name: String
        /// The columns by name; the first one is the key.
        let columns: [(name: String, kind: Kind)]
        let rows: [[Cell]]
    }

    enum Kind {
        case text
        case integer
        case real
    }

    enum Cell {
        case text(String)
        case integer(Int)
        case real(Double)
        case null
    }

    static let orderCount = 15_867
    static let orderColumns: [(name: String, kind: Kind)] = [
        ("orderID", .integer), ("customerID", .text), ("employeeID", .integer), ("orderDate", .text),
        ("requiredDate", .text), ("shippedDate", .text), ("shipVia", .integer), ("freight", .real), ("shipName", .text),
        ("shipAddress", .text), ("shipCity", .text), ("shipRegion", .text), ("shipPostalCode", .text),
        ("shipCountry", .text),
    ]

    let tables: [Table]

    init(seed: UInt64) {
        var maker = Maker(generator: SeededGenerator(seed: seed))
        let customers = maker.customers(93)
        let products = maker.products(77)
        tables = [
            customers, maker.employees(9), products, maker.orders(Self.orderCount, customers),
            maker.details(Self.orderCount, products),
        ]
    }

    /// Makes the rows, in one order, so that the same seed makes the same data.
    private struct Maker {
        var generator: SeededGenerator

        private static let firstOrder = 10_248
        private static let syllables = [
            "an", "ber", "cor", "da", "el", "fin", "gar", "hol", "is", "lund", "mar", "vik",
        ]
        private static let countries = ["Austria", "Brazil", "France", "Germany", "Mexico", "Spain", "UK", "USA"]
        private static let streets = ["Street", "Road", "Square", "Avenue", "Lane"]

        private mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &generator) }

        private mutating func pick(_ words: [String]) -> String { words[number(0...(words.count - 1))] }

        private mutating func word(_ syllables: ClosedRange<Int>) -> String {
            (0..<number(syllables)).map { _ in pick(Self.syllables) }.joined().capitalized
        }

        private mutating func name() -> String { "\(word(1...2)) \(word(2...3))" }
        private mutating func street() -> String { "\(word(2...4)) \(pick(Self.streets)) \(number(1...199))" }
        private mutating func price() -> Double { Double(number(100...26_000)) / 100 }

        private mutating func day(_ years: ClosedRange<Int>) -> String {
            let (year, month, day) = (number(years), number(1...12), number(1...28))
            return "\(year)-\(month < 10 ? "0" : "")\(month)-\(day < 10 ? "0" : "")\(day)"
        }

        private mutating func time(_ years: ClosedRange<Int>) -> String {
            let (hour, minute) = (number(10...23), number(10...59))
            return "\(day(years)) \(hour):\(minute):00"
        }

        /// The name, the address, the city, the region, the postal code and the country of a customer.
        private mutating func address() -> [Cell] {
            [
                .text("\(word(2...3)) \(word(1...3)) Ltd."), .text(street()), .text(word(2...4)),
                number(1...5) < 3 ? .text(word(1...2)) : .null, .text("\(number(10_000...99_999))"),
                .text(pick(Self.countries)),
            ]
        }

        mutating func customers(_ count: Int) -> Table {
            let names = [
                "customerID", "companyName", "address", "city", "region", "postalCode", "country", "contactName",
                "phone",
            ]
            return Table(
                name: "Customer",
                columns: names.map { ($0, .text) },
                rows: (0..<count).map { row in
                    let key = "C\(row < 10 ? "000" : "00")\(row)"
                    return [.text(key)] + address() + [.text(name()), .text("030-00\(number(10_000...99_999))")]
                }
            )
        }

        mutating func employees(_ count: Int) -> Table {
            Table(
                name: "Employee",
                columns: [
                    ("employeeID", .integer), ("lastName", .text), ("firstName", .text), ("birthDate", .text),
                    ("hireDate", .text),
                ],
                rows: (1...count).map { key in
                    [
                        .integer(key), .text(word(2...3)), .text(word(1...2)), .text(day(1950...1980)),
                        .text(day(1992...1994)),
                    ]
                }
            )
        }

        mutating func products(_ count: Int) -> Table {
            Table(
                name: "Product",
                columns: [
                    ("productID", .integer), ("productName", .text), ("supplierID", .integer), ("categoryID", .integer),
                    ("quantityPerUnit", .text), ("unitPrice", .real), ("unitsInStock", .integer),
                    ("discontinued", .integer),
                ],
                rows: (1...count).map { key in
                    [
                        .integer(key), .text(name()), .integer(number(1...29)), .integer(number(1...8)),
                        .text("\(number(4...48)) boxes"), .real(price()), .integer(number(0...125)),
                        .integer(number(0...9) / 9),
                    ]
                }
            )
        }

        mutating func orders(_ count: Int, _ customers: Table) -> Table {
            Table(
                name: "Order",
                columns: NorthwindData.orderColumns,
                rows: (0..<count).map { row in
                    let customer = customers.rows[number(0...(customers.rows.count - 1))]
                    let head: [Cell] = [.integer(Self.firstOrder + row), customer[0], .integer(number(1...9))]
                    let shipped = number(1...40) == 1 ? Cell.null : .text(time(2012...2023))
                    let dates: [Cell] = [.text(time(2012...2023)), .text(time(2012...2023)), shipped]
                    return head + dates + [.integer(number(1...3)), .real(price())] + customer[1...6]
                }
            )
        }

        mutating func details(_ orders: Int, _ products: Table) -> Table {
            var rows: [[Cell]] = []
            for order in 0..<orders {
                for line in 1...number(1...5) {
                    let product = products.rows[number(0...(products.rows.count - 1))]
                    rows.append([
                        .integer(rows.count + 1), .integer(Self.firstOrder + order), .integer(line), product[0],
                        product[5],
                        .integer(number(1...60)), .real(Double(number(0...5)) / 20),
                    ])
                }
            }
            return Table(
                name: "OrderDetail",
                columns: [
                    ("detailID", .integer), ("orderID", .integer), ("line", .integer), ("productID", .integer),
                    ("unitPrice", .real),
                    ("quantity", .integer), ("discount", .real),
                ],
                rows: rows
            )
        }
    }
}

import CoreData

/// An order of Northwind with its 14 values.
@ManagedObject
final class NorthwindOrder: NSManagedObject {
    @Managed var orderID: Int64
    @Managed var customerID: String
    @Managed var employeeID: Int64
    @Managed var orderDate: String
    @Managed var requiredDate: String
    @Managed var shippedDate: String?
    @Managed var shipVia: Int64
    @Managed var freight: Double
    @Managed var shipName: String
    @Managed var shipAddress: String
    @Managed var shipCity: String
    @Managed var shipRegion: String?
    @Managed var shipPostalCode: String
    @Managed var shipCountry: String
}

extension NorthwindOrder {
    /// A sum over all values.
    @inline(__always)
    var checksum: Int {
        let dates = orderDate.utf8.count &+ requiredDate.utf8.count &+ (shippedDate?.utf8.count ?? 0)
        let place = shipAddress.utf8.count &+ shipCity.utf8.count &+ (shipRegion?.utf8.count ?? 0)
        let rest = shipName.utf8.count &+ shipPostalCode.utf8.count &+ shipCountry.utf8.count
        let numbers = Int(orderID) &+ Int(employeeID) &+ Int(shipVia) &+ Int(freight)
        return numbers &+ customerID.utf8.count &+ dates &+ place &+ rest
    }
}

/// The same as a structure, as a program without a framework would have it.
struct PlainOrder {
    let orderID: Int64
    let customerID: String
    let employeeID: Int64
    let orderDate: String
    let requiredDate: String
    let shippedDate: String?
    let shipVia: Int64
    let freight: Double
    let shipName: String
    let shipAddress: String
    let shipCity: String
    let shipRegion: String?
    let shipPostalCode: String
    let shipCountry: String

    @inline(__always)
    init(_ row: RawStatement) {
        orderID = row.integer(0)
        customerID = row.text(1)
        employeeID = row.integer(2)
        orderDate = row.text(3)
        requiredDate = row.text(4)
        shippedDate = row.optionalText(5)
        shipVia = row.integer(6)
        freight = row.double(7)
        shipName = row.text(8)
        shipAddress = row.text(9)
        shipCity = row.text(10)
        shipRegion = row.optionalText(11)
        shipPostalCode = row.text(12)
        shipCountry = row.text(13)
    }

    @inline(__always)
    var checksum: Int {
        let dates = orderDate.utf8.count &+ requiredDate.utf8.count &+ (shippedDate?.utf8.count ?? 0)
        let place = shipAddress.utf8.count &+ shipCity.utf8.count &+ (shipRegion?.utf8.count ?? 0)
        let rest = shipName.utf8.count &+ shipPostalCode.utf8.count &+ shipCountry.utf8.count
        let numbers = Int(orderID) &+ Int(employeeID) &+ Int(shipVia) &+ Int(freight)
        return numbers &+ customerID.utf8.count &+ dates &+ place &+ rest
    }
}

extension PlainOrder {
    /// The values of an order by name; a missing one has no key.
    @inline(__always)
    static func values(_ row: RawStatement) -> [String: Any] {
        var values: [String: Any] = Dictionary(minimumCapacity: NorthwindData.orderColumns.count)
        for (index, column) in NorthwindData.orderColumns.enumerated() {
            let index = Int32(truncatingIfNeeded: index)
            switch column.kind {
            case .integer: values[column.name] = NSNumber(value: row.integer(index))
            case .real: values[column.name] = NSNumber(value: row.double(index))
            case .text: if let text = row.optionalText(index) { values[column.name] = text }
            }
        }
        return values
    }
}

/// The same as an object.
///
/// The values lie in the object itself, as if it declared each of them.
final class PlainOrderObject {
    let values: PlainOrder

    @inline(__always)
    init(_ row: RawStatement) {
        values = PlainOrder(row)
    }
}

/// A sum over the values of an order that are read by name, with `value` for each.
@inline(__always)
func checksum(ofOrder value: (String) -> Any?) -> Int {
    func length(_ name: String) -> Int { (value(name) as? String)?.utf8.count ?? 0 }
    func integer(_ name: String) -> Int { (value(name) as? NSNumber)?.intValue ?? 0 }
    let dates = length("orderDate") &+ length("requiredDate") &+ length("shippedDate")
    let place = length("shipAddress") &+ length("shipCity") &+ length("shipRegion")
    let rest = length("shipName") &+ length("shipPostalCode") &+ length("shipCountry")
    let numbers = integer("orderID") &+ integer("employeeID") &+ integer("shipVia") &+ integer("freight")
    return numbers &+ length("customerID") &+ dates &+ place &+ rest
}

/// A sum over the values of an order's row, read with their types.
@Sendable
func checksum(ofRow row: FetchedRow) -> Int {
    func length(_ name: String) -> Int { row[name, as: String.self]?.utf8.count ?? 0 }
    func integer(_ name: String) -> Int { row[name, as: Int.self] ?? 0 }
    let dates = length("orderDate") &+ length("requiredDate") &+ length("shippedDate")
    let place = length("shipAddress") &+ length("shipCity") &+ length("shipRegion")
    let rest = length("shipName") &+ length("shipPostalCode") &+ length("shipCountry")
    let numbers = integer("orderID") &+ integer("employeeID") &+ integer("shipVia")
    return numbers &+ Int(row["freight", as: Double.self] ?? 0) &+ length("customerID") &+ dates &+ place &+ rest
}

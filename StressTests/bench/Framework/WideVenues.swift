import CoreData

/// A venue of eight properties more.
@ManagedObject
final class MediumVenue: Venue {
    @Managed var note0: String
    @Managed var code0: String
    @Managed var count0: Int64
    @Managed var stock0: Int32
    @Managed var amount0: Double
    @Managed var rate0: Double
    @Managed var time0: Date
    @Managed var flag0: Bool

    override func fillExtras(_ number: Int) {
        let values0 = ExtraValues(number, 0)
        (note0, code0, count0, stock0) = (
            values0.note, values0.code, values0.count, values0.stock
        )
        (amount0, rate0, time0, flag0) = (
            values0.amount, values0.rate, values0.time, values0.flag
        )
    }

    override var extraChecksum: Int {
        let numbers0 = Int(count0) &+ Int(stock0) &+ Int(amount0) &+ Int(rate0) &+ (flag0 ? 1 : 0)
        let texts0 = note0.utf8.count &+ code0.utf8.count &+ Int(time0.timeIntervalSinceReferenceDate)
        return numbers0 &+ texts0
    }
}

/// A venue of twenty-four properties more.
@ManagedObject
final class WideVenue: Venue {
    @Managed var note0: String
    @Managed var code0: String
    @Managed var count0: Int64
    @Managed var stock0: Int32
    @Managed var amount0: Double
    @Managed var rate0: Double
    @Managed var time0: Date
    @Managed var flag0: Bool
    @Managed var note1: String
    @Managed var code1: String
    @Managed var count1: Int64
    @Managed var stock1: Int32
    @Managed var amount1: Double
    @Managed var rate1: Double
    @Managed var time1: Date
    @Managed var flag1: Bool
    @Managed var note2: String
    @Managed var code2: String
    @Managed var count2: Int64
    @Managed var stock2: Int32
    @Managed var amount2: Double
    @Managed var rate2: Double
    @Managed var time2: Date
    @Managed var flag2: Bool

    override func fillExtras(_ number: Int) {
        let values0 = ExtraValues(number, 0)
        (note0, code0, count0, stock0) = (
            values0.note, values0.code, values0.count, values0.stock
        )
        (amount0, rate0, time0, flag0) = (
            values0.amount, values0.rate, values0.time, values0.flag
        )
        let values1 = ExtraValues(number, 1)
        (note1, code1, count1, stock1) = (
            values1.note, values1.code, values1.count, values1.stock
        )
        (amount1, rate1, time1, flag1) = (
            values1.amount, values1.rate, values1.time, values1.flag
        )
        let values2 = ExtraValues(number, 2)
        (note2, code2, count2, stock2) = (
            values2.note, values2.code, values2.count, values2.stock
        )
        (amount2, rate2, time2, flag2) = (
            values2.amount, values2.rate, values2.time, values2.flag
        )
    }

    override var extraChecksum: Int {
        let numbers0 = Int(count0) &+ Int(stock0) &+ Int(amount0) &+ Int(rate0) &+ (flag0 ? 1 : 0)
        let texts0 = note0.utf8.count &+ code0.utf8.count &+ Int(time0.timeIntervalSinceReferenceDate)
        let numbers1 = Int(count1) &+ Int(stock1) &+ Int(amount1) &+ Int(rate1) &+ (flag1 ? 1 : 0)
        let texts1 = note1.utf8.count &+ code1.utf8.count &+ Int(time1.timeIntervalSinceReferenceDate)
        let numbers2 = Int(count2) &+ Int(stock2) &+ Int(amount2) &+ Int(rate2) &+ (flag2 ? 1 : 0)
        let texts2 = note2.utf8.count &+ code2.utf8.count &+ Int(time2.timeIntervalSinceReferenceDate)
        return numbers0 &+ texts0 &+ numbers1 &+ texts1 &+ numbers2 &+ texts2
    }
}

extension RowWidth {
    var venueClass: Venue.Type {
        switch self {
        case .narrow: Venue.self
        case .medium: MediumVenue.self
        case .wide: WideVenue.self
        }
    }

    /// Makes a venue of this width.
    func makeVenue(_ number: Int, in context: NSManagedObjectContext) -> Venue {
        switch self {
        case .narrow: return Venue(context: context)
        case .medium:
            let venue = MediumVenue(context: context)
            venue.fillExtras(number)
            return venue
        case .wide:
            let venue = WideVenue(context: context)
            venue.fillExtras(number)
            return venue
        }
    }
}

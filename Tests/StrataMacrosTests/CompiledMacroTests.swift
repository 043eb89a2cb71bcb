import Expectations
import Testing

@Suite("Macros in a real compilation")
struct CompiledMacroTests {
    @Test func `a value goes through the accessors to the runtime and back`() {
        let city = City()

        city.name = "Kraków"
        city.population = 804_237
        city.assign(code: "KRK")
        city.default = 7
        city.`opening hours` = "always"
        city.rank = 2

        expectEqual(city.name, "Kraków")
        expectEqual(city.population, 804_237)
        expectEqual(city.code, "KRK")
        expectEqual(city.default, 7)
        expect(
            Set(city.values.keys) == ["name", "population", "code", "default", "opening hours", "rank"]
        )
        city.name = nil
        expectEqual(city.name, nil)
        expect(city.values["name"] == nil)
    }

    @Test func `an explicit name is the one the runtime sees`() {
        let place = Place()

        place.summary = "old town"

        expectEqual(place.values["descriptionText"] as? String, "old town")
    }

    @Test func `raw representable types choose the overload for raw values`() {
        let city = City()

        city.priority = .high
        city.fallback = .low

        expectEqual(city.values["priority"] as? Int16, 1)
        expectEqual(city.priority, .high)
        expectEqual(city.fallback, .low)
        city.fallback = nil
        expectEqual(city.fallback, nil)
    }

    @Test func `relationships keep their collection types`() {
        let city = City()
        let district = Countries.District()

        city.districts = [district]
        city.ordered = [district, district]
        city.twin = city
        district.city = city
        district.postalCode = "31-042"

        expectEqual(city.districts, [district])
        expectEqual(city.ordered.count, 2)
        expect(city.twin === city)
        expect(district.city === city)
        expectEqual(district.postalCode, "31-042")
        expectEqual(localClassRoundTrip(3), 3)
    }

    @Test func `the table lists names, key paths and types, the superclass's first`() {
        let own = Place.managedProperties
        let inherited = City.managedProperties

        expect(
            own.map(\.name) == [
                "name", "population", "code", "descriptionText", "default", "opening hours", "rank", "here",
            ]
        )
        expectEqual(own[0].keyPath, \Place.name)
        expectEqual(own[2].keyPath, \Place.code)
        expectEqual(own[5].keyPath, \Place.`opening hours`)
        expectEqual(ObjectIdentifier(own[0].type), ObjectIdentifier(String?.self))
        expectEqual(inherited.prefix(own.count).map(\.name), own.map(\.name))
        expect(
            inherited.dropFirst(own.count).map(\.name) == [
                "priority", "fallback", "twin", "districts", "ordered", "rank",
            ]
        )
        expectEqual(inherited.last?.keyPath, \City.rank)
        expectEqual(ObjectIdentifier(inherited[own.count + 3].type), ObjectIdentifier(Set<Countries.District>.self))
    }

    @Test func `nested, private and empty classes have tables too`() {
        expectEqual(Countries.District.managedProperties.map(\.name), ["city", "secret", "neighbours"])
        expectEqual(hiddenProperties().map(\.name), ["value"])
        expect(ghostProperties().isEmpty)
        expectEqual(Suburb.managedProperties.map(\.name), Place.managedProperties.map(\.name))
    }

    @Test func `the table follows the class it is asked of`() {
        let type: NSManagedObject.Type = City.self

        expectEqual(type.managedProperties.count, City.managedProperties.count)
    }
}
